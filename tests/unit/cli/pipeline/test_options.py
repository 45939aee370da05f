"""The options that actions of `ottla pipeline` share."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ottla.cli.pipeline.options import Clients, cluster_option
from ottla.spark.pipelines.spec import Spec


def test_login_comes_from_flags_and_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that a flag names wins over the pipeline's own settings, which win over variables."""
    spec = Spec(tmp_path, "shop", "s", {"kafka.security.protocol": "SSL", "kafka.client.id": "mine"})
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n")
    monkeypatch.setenv("OTTLA_SASL_USERNAME", "alice")
    monkeypatch.setenv("OTTLA_SASL_PASSWORD", "wonder")
    monkeypatch.delenv("OTTLA_COMMAND_CONFIG", raising=False)

    shown: list[dict[str, str]] = []

    @click.command()
    @cluster_option
    def show(clients: Clients) -> None:
        made = clients.of(spec)
        assert "wonder" not in made.masked(str(made.configuration))
        shown.append(made.configuration)

    CliRunner().invoke(show, ["--command-config", str(file), "-b", "h:1"], catch_exceptions=False)
    over = shown.pop()
    assert 'username="alice" password="wonder"' in over.pop("kafka.sasl.jaas.config")
    assert over == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.bootstrap.servers": "h:1",
        "kafka.client.id": "mine",
    }
    monkeypatch.setenv("OTTLA_COMMAND_CONFIG", str(file))
    CliRunner().invoke(show, [], catch_exceptions=False)
    (under,) = shown
    assert (under["kafka.security.protocol"], under["kafka.sasl.mechanism"]) == ("SSL", "PLAIN")
