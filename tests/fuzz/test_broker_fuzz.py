"""Odd requests of every API and version, and damaged ones, sent to a running node.

Each request is answered or its connection closed. Afterwards the node still serves, uses no more memory, and has logged no
unexpected error (`HostileNode`). Seeds are fixed; `test_for_long` runs longer, with other seeds.
"""

from random import Random

import pytest
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.hostile.hostile_requests import TOPICS, random_request, tampered
from tests.support.peers.raw_client import ConnectionClosed, RawClient
from tests.support.peers.topics import make_topic

from ottla.broker.requests.apis import ON_BROKER
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.codec import decode_all
from ottla.wire.headers import parse_request, read_response_header

ANSWER_S_MAX = 20
API_KEYS = sorted(ON_BROKER.keys() - {ApiKey.UNREGISTER_BROKER})
"""As with Apache Kafka, a living broker can be unregistered by who may do so: then it serves no more."""

SETTINGS = {"keyed": {"cleanup.policy": "compact"}, "small": {"max.message.bytes": 1000}}


def prepare(node: HostileNode) -> None:
    for name in TOPICS:
        make_topic(node.bootstrap, name, 3, SETTINGS.get(name))


def wants_no_answer(frame: bytes) -> bool:
    _, request = parse_request(bytearray(frame[4:]))
    return request.KEY == ApiKey.PRODUCE and request.acks == 0


def ask(client: RawClient, api_key: int, version: int, frame: bytes) -> bool:
    """Send a request that follows the schema, and read its whole response. Returns whether the connection is still open."""
    if wants_no_answer(frame):
        client.send_bytes(frame)
        return True
    try:
        client.send_bytes(frame)
        reply = client.receive_frame()
    except (ConnectionClosed, ConnectionError):
        return False
    assert reply[:4] == frame[8:12], "this is the response to another request"
    decode_all(APIS[api_key].response_class, version, reply, read_response_header(reply, api_key, version)[1])
    return True


def odd_requests(node: HostileNode, seed: int, count: int) -> int:
    """Send odd requests, on one connection until the node closes it. Returns how often it did."""
    random = Random(seed)
    closed = 0
    client = node.connect(ANSWER_S_MAX)
    for _ in range(count):
        api_key = random.choice(API_KEYS)
        version = random.randint(APIS[api_key].oldest, APIS[api_key].advertised()[1])
        if not ask(client, api_key, version, random_request(random, api_key, version)):
            closed += 1
            client.close()
            client = node.connect(ANSWER_S_MAX)
    client.close()
    return closed


def tampered_requests(node: HostileNode, seed: int, count: int) -> None:
    """Send damaged bytes and half-close: the node may answer, and closes the connection."""
    random = Random(seed)
    for _ in range(count):
        api_key = random.choice(API_KEYS)
        version = random.randint(APIS[api_key].oldest, APIS[api_key].advertised()[1])
        with node.connect(ANSWER_S_MAX) as client:
            client.send_bytes(b"".join(tampered(random, random_request(random, api_key, version)) for _ in range(3)))
            client.half_close()
            client.await_end()


@linux_only
def test_odd_requests() -> None:
    with HostileNode() as node:
        prepare(node)
        closed = odd_requests(node, seed=1, count=900)
        # Only two things close the connection of a client that follows the schema: an error with acks=0, and a produce
        # request that cannot be read.
        assert closed < 60, closed


@linux_only
def test_tampered_requests() -> None:
    with HostileNode() as node:
        prepare(node)
        tampered_requests(node, seed=2, count=500)


@linux_only
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_for_long(seed: int) -> None:
    with HostileNode() as node:
        prepare(node)
        for part in range(5):
            odd_requests(node, seed * 10 + part, 2000)
            tampered_requests(node, seed * 10 + part, 1000)
            node.must_be_unharmed()
