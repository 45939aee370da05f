"""Golden requests, whole and damaged, sent to a whole node: every API it serves, in every version.

The golden requests fill every field, so most of them name things that do not exist. The node answers each or closes its
connection. It stays up, still serves, and logs no unexpected error.
"""

import socket
from collections.abc import Iterator
from random import Random

import pytest
from tests.fuzz.test_wire_fuzz import damaged
from tests.support.cases.wire_golden import Golden, golden_cases
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import start_ottla

from ottla.broker.requests.apis import ON_BROKER, ON_CONTROLLER
from ottla.wire.apis import APIS
from ottla.wire.headers import request_header_version

PATIENCE_S = 0.05
"""How long to wait for a response: some requests are parked for long, and some are never answered."""

MARKS_OF_BUGS = ("Traceback", "unexpected error", "no error response could be made")


@pytest.fixture(scope="module")
def server() -> Iterator[KafkaServer]:
    with start_ottla({"controller.quorum.election.timeout.ms": 1000}) as running:
        yield running


def requests() -> list[Golden]:
    return [case for case in golden_cases() if case.cls.__name__.endswith("Request") and case.cls.KEY in ON_BROKER]


def frame(case: Golden, body: bytes) -> bytes:
    head = case.cls.KEY.to_bytes(2, "big") + case.version.to_bytes(2, "big") + b"\0\0\0\7\0\4fuzz"
    if request_header_version(case.cls.KEY, case.version) == 2:
        head += b"\0"
    return (len(head) + len(body)).to_bytes(4, "big") + head + body


def send(address: str, data: bytes) -> None:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(data)
        connection.settimeout(PATIENCE_S)
        try:
            connection.recv(65_536)
        except (TimeoutError, ConnectionError):
            pass


def is_answering(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\7\xff\xff")
        return connection.recv(8, socket.MSG_WAITALL)[4:] == b"\0\0\0\7"


def check(server: KafkaServer, what: str) -> None:
    assert is_answering(server.bootstrap), what
    log = server.log_text()
    for mark in MARKS_OF_BUGS:
        assert mark not in log, what


@pytest.mark.parametrize("key", sorted(ON_BROKER), ids=lambda key: APIS[key].name)
def test_requests_of_one_api(server: KafkaServer, key: int) -> None:
    random = Random(key)
    for case in requests():
        if key != case.cls.KEY:
            continue
        for attempt in range(4):
            body = case.data if attempt == 0 else damaged(random, case.data)
            send(server.bootstrap, frame(case, body))
            if key in ON_CONTROLLER:
                send(server.controller_bootstrap, frame(case, body))
        check(server, f"{case.cls.__name__} version {case.version}, {case.fill}")


def test_all_in_one_stream(server: KafkaServer) -> None:
    random = Random(1)
    for _ in range(30):
        cases = random.choices(requests(), k=20)
        send(server.bootstrap, b"".join(frame(case, case.data) for case in cases))
    check(server, "streams of requests")
    assert "closing the connection of 127.0.0.1" in server.log_text(), "unexpected errors show in the log"
