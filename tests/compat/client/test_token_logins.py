"""Logins with tokens that settings name, against Apache Kafka: clients, and commands, which have strings only."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_leaders
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S, ports_of
from tests.support.servers.secure_kafka import secure_properties
from tests.support.servers.tls_server import make_certificates
from tests.support.servers.token_endpoint import TokenEndpoint, token_endpoint, unsigned_token

from ottla.client import tokens
from ottla.errors import AuthenticationError

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

WAIT_S = 60
HANDLER = "sasl.login.callback.handler.class"
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}


@pytest.fixture(scope="module")
def ports(apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    with apache_kafka.start_server(secure_properties(certificates)) as server:
        yield ports_of(server.properties)


@pytest.fixture
def bootstrap(ports: dict[str, int]) -> str:
    return f"127.0.0.1:{ports['SASL']}"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenEndpoint]:
    monkeypatch.setattr(tokens, "_shared", {})
    with token_endpoint() as running:
        yield running


def test_one_token_serves_all_clients_of_a_process(
    bootstrap: str, ports: dict[str, int], endpoint: TokenEndpoint, face: Faces, topic: str
) -> None:
    config = LOGIN | endpoint.settings()
    assert not face.admin(bootstrap, config=config).create_topics({topic: 1}).errors
    await_leaders(f"127.0.0.1:{ports['PLAINTEXT']}", topic, 1)
    producers = [face.producer(bootstrap, config=config) for _ in range(3)]
    for number, producer in enumerate(producers):
        assert producer.send(topic, b"v", partition=0).result(WAIT_S).offset == number
    consumer = face.consumer(bootstrap, group_id=topic, auto_offset_reset="earliest", config=config)
    consumer.subscribe([topic])
    found: list[Any] = []
    while len(found) < 3:
        records = consumer.poll(WAIT_S)
        assert records, f"only {found} within {WAIT_S} s"
        found += records
    assert endpoint.requests == 1
    assert endpoint.forms == [{"grant_type": "client_credentials", "scope": "kafka"}]


def test_a_token_is_renewed_before_it_expires(bootstrap: str, endpoint: TokenEndpoint, face: Faces, topic: str) -> None:
    """Apache ends a session with its token: sends go on past that, with one request for each lifetime."""
    endpoint.lifetime_s = 4
    producer = face.producer(bootstrap, linger_ms=0, config=LOGIN | endpoint.settings())
    until, offsets = monotonic() + 10, []
    while monotonic() < until:
        offsets.append(producer.send(topic, b"v", partition=0).result(WAIT_S).offset)
        sleep(0.05)
    assert offsets == list(range(len(offsets)))
    assert 3 <= endpoint.requests <= 6


def test_a_refused_client_is_told_by_the_first_call(bootstrap: str, endpoint: TokenEndpoint, face: Faces, topic: str) -> None:
    config = LOGIN | endpoint.settings() | {"sasl.oauthbearer.client.credentials.client.secret": "wr0ng"}
    with pytest.raises(AuthenticationError) as caught:
        face.producer(bootstrap, config=config).send(topic, b"v")
    assert f"the token endpoint {endpoint.url} answered 401 Unauthorized (invalid_client: no such client)" in str(caught.value)
    assert "wr0ng" not in str(caught.value)


def test_commands(bootstrap: str, endpoint: TokenEndpoint, tmp_path: Path) -> None:
    """With an endpoint, a file, and a function in a module that only PYTHONPATH knows."""
    (tmp_path / "token").write_text(unsigned_token(600))
    (tmp_path / "company_login.py").write_text(f"def token(settings):\n    return {unsigned_token(600)!r}\n")
    (tmp_path / "broken_login.py").write_text("def token(settings):\n    raise KeyError('TENANT')\n")
    listed = {
        "endpoint": endpoint.settings(),
        "file": {"sasl.oauthbearer.token.endpoint.url": (tmp_path / "token").as_uri()},
        "function": {HANDLER: "company_login:token"},
    }
    for name, settings in listed.items():
        done = _topics(bootstrap, settings, tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), name
    for path, words in {
        "broken_login:token": f"the token provider broken_login:token ({HANDLER}) raised KeyError: 'TENANT'",
        "no_login:token": f"{HANDLER}=no_login:token: cannot import no_login",
    }.items():
        done = _topics(bootstrap, {HANDLER: path}, tmp_path)
        assert done.returncode != 0
        assert words in done.stderr
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) <= 3, done.stderr


def _topics(bootstrap: str, settings: dict[str, str], folder: Path) -> "subprocess.CompletedProcess[str]":
    lines = (LOGIN | settings).items()
    (folder / "client.properties").write_text("".join(f"{name}={value}\n" for name, value in lines))
    command = [sys.executable, "-m", "ottla", "topics", "list", "--bootstrap-server", bootstrap]
    return subprocess.run(
        [*command, "--command-config", str(folder / "client.properties")],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
        check=False,
    )
