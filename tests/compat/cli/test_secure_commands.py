"""Commands that make clients, over TLS and SASL: a file with settings, and the login in environment variables."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.kafka_server import ports_of
from tests.support.servers.ottla_cli import run_cli
from tests.support.servers.ottla_server import StartServer
from tests.support.servers.secure_kafka import ALICES_PASSWORD, secure_properties
from tests.support.servers.tls_server import make_certificates


@pytest.fixture(scope="module")
def where(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The flags that reach a SASL_SSL listener; the login is in the environment."""
    folder: Path = tmp_path_factory.mktemp("secure")
    certificates = make_certificates(folder)
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates.authority.certificate,
    }
    config = folder / "client.properties"
    config.write_text("\n".join(f"{name}={value}" for name, value in settings.items()))
    with start_server(secure_properties(certificates)) as server:
        yield ("-b", f"127.0.0.1:{ports_of(server.properties)['SASLTLS']}", "--command-config", str(config))


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_SASL_USERNAME", "alice")
    monkeypatch.setenv("OTTLA_SASL_PASSWORD", ALICES_PASSWORD)


def test_perf_and_verifiable_clients_log_in(where: tuple[str, ...], login: None) -> None:
    for arguments in (
        ("perf", "produce", "load", "--num-records", 100),
        ("perf", "consume", "load", "--num-records", 100),
        ("topics", "create", "load-latency"),
        ("perf", "latency", "load-latency", "--num-records", 3),
        ("verifiable-producer", "verified", "--max-messages", 5),
        ("verifiable-consumer", "verified", "--group-id", "g", "--max-messages", 5),
    ):
        said = run_cli(*arguments, *where)
        assert (said.rc, said.err) == (0, ""), arguments
    listed = {each["name"]: each["records"] for each in json.loads(run_cli("topics", "list", "--json", *where).out)}
    assert (listed["load"], listed["load-latency"], listed["verified"]) == (100, 3, 5)


def test_produce_and_consume_log_in(where: tuple[str, ...], login: None, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run_cli("produce", "secrets", *where, stdin=b"a\nb\n")
    assert (said.rc, said.err) == (0, "2 records stored in secrets.\n")
    assert sorted(run_cli("consume", "secrets", "--from-beginning", "--until-end", *where).lines) == ["a", "b"]
    monkeypatch.setenv("OTTLA_SASL_PASSWORD", "wrong")
    said = run_cli("produce", "secrets", *where, stdin=b"c\n")
    assert said.rc == 1
    assert "user name and password" in said.err
    assert said.err.endswith(". 0 records stored in secrets\n")


def test_wrong_password_is_an_error_at_once(where: tuple[str, ...], login: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_SASL_PASSWORD", "wrong")
    for action in ("produce", "consume", "latency"):
        said = run_cli("perf", action, "load", *where)
        assert said.rc == 1
        assert "user name and password" in said.err
    said = run_cli("verifiable-producer", "load", *where)
    assert said.rc == 1
    assert "user name and password" in said.err
    names = [json.loads(line)["name"] for line in said.lines]
    assert names == ["startup_complete", "producer_send_error", "shutdown_complete", "tool_data"]
    said = run_cli("verifiable-consumer", "load", "--group-id", "g", *where)
    assert said.rc == 1
    assert [json.loads(line)["name"] for line in said.lines] == ["startup_complete", "shutdown_complete"]
