"""Requests to a running node with ids, epochs and generations that are or were valid, at the wrong time and in wrong places.

Every request is answered in time, and every transaction ends. A node that starts after the first was killed finds the same
groups and transactions. As in `test_broker_fuzz`, the node logs no unexpected error (`HostileNode`).
"""

import time
from pathlib import Path
from random import Random

import pytest
from tests.fuzz.hostile_members import GROUPS, PRODUCERS, TOPICS, Insider
from tests.support.hostile.hostile_client import HostileClient
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.peers.raw_client import ConnectionClosed
from tests.support.peers.topics import describe_topic, make_topic

from ottla.wire.apis import ApiKey
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

SETTINGS = ("--set", "transaction.abort.timed.out.transaction.cleanup.interval.ms=200")
UNSETTLED = ("Ongoing", "PrepareCommit", "PrepareAbort")
IN_PROGRESS = (14, 15, 16)


def await_coordinators(client: HostileClient) -> None:
    for kind, names in ((0, GROUPS), (1, PRODUCERS)):
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(names))
        while any(each.error_code for each in client.request(request, 4).coordinators):
            time.sleep(0.05)


def misuse(node: HostileNode, seed: int, count: int) -> dict[int, int]:
    """Send `count` requests on three connections in turn. Returns how often each error code was the response."""
    insider = Insider(Random(seed), [describe_topic(node.bootstrap, name).topic_id for name in TOPICS])
    clients = [node.connect() for _ in range(3)]
    await_coordinators(clients[0])
    codes: dict[int, int] = {}
    for number in range(count):
        api_key, version, message = insider.request()
        try:
            response = clients[number % 3].request(message, version)
        except ConnectionClosed:
            assert api_key == ApiKey.PRODUCE, f"the connection was closed over {message}"  # records that cannot be read
            clients[number % 3] = node.connect()
            continue
        insider.learn(api_key, response)
        code = getattr(response, "error_code", 0)
        codes[code] = codes.get(code, 0) + 1
    for client in clients:
        client.close()
    return codes


def settled_state(node: HostileNode) -> tuple[list[str], list[object]]:
    """The transactions once all have ended, and the committed offsets of the groups."""
    with node.connect() as client:
        await_coordinators(client)
        ask = DescribeTransactionsRequest(transactional_ids=list(PRODUCERS))
        until_s = time.monotonic() + 60
        while True:
            found = client.request(ask, 0).transaction_states
            states = [each.transaction_state for each in found]
            if not any(each.error_code in IN_PROGRESS or each.transaction_state in UNSETTLED for each in found):
                break
            assert time.monotonic() < until_s, f"transactions that do not end: {states}"
            time.sleep(0.05)
        wanted = [OffsetFetchRequestGroup(group_id=each, topics=None) for each in GROUPS]
        while True:
            groups = client.request(OffsetFetchRequest(groups=wanted, require_stable=True), 8).groups
            if not any(each.error_code in IN_PROGRESS for each in groups):
                return states, groups


def attack(data: Path, seeds: range, count: int) -> None:
    with HostileNode(data, SETTINGS) as node:
        for name in TOPICS:
            make_topic(node.bootstrap, name, 3)
        codes: dict[int, int] = {}
        for seed in seeds:
            for code, times in misuse(node, seed, count).items():
                codes[code] = codes.get(code, 0) + times
        assert len(codes) >= 10, f"the insider did not get far: {codes}"
        before = settled_state(node)
        node.must_be_unharmed()
        node.kill()
    with HostileNode(data, SETTINGS) as node:
        assert settled_state(node) == before


@linux_only
def test_insiders(tmp_path: Path) -> None:
    attack(tmp_path, range(1, 3), 600)


@linux_only
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 105))
def test_insiders_for_long(tmp_path: Path, seed: int) -> None:
    attack(tmp_path, range(seed * 10, seed * 10 + 5), 2000)
