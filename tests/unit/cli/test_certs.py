"""`ottla certs`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ottla.cli.certs import certs


def test_authority_node_and_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    assert runner.invoke(certs, ["ca"], catch_exceptions=False).exit_code == 0
    made = runner.invoke(certs, ["node", "k1", "--host", "localhost", "--host", "10.0.0.5"], catch_exceptions=False)
    assert f"ssl.keystore.location={tmp_path}/ottla-certs/k1.pem" in made.output
    assert runner.invoke(certs, ["client", "alice", "--days", "3"], catch_exceptions=False).exit_code == 0
    (node, ca) = json.loads(runner.invoke(certs, ["show", "--json", "ottla-certs/k1.pem"]).output)
    assert (node["subject"], node["names"], node["issuer"]) == ("CN=k1", ["localhost", "10.0.0.5"], ca["subject"])
    assert "2 days left" in runner.invoke(certs, ["show", "ottla-certs/alice.pem"]).output


def test_files_without_certificates_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("no PEM")
    assert "holds no certificate" in str(CliRunner().invoke(certs, ["show", str(tmp_path / "x.pem")]).exception)
