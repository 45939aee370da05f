"""Committed offsets through a whole node: kept over restarts and kills, deleted with their topics, too many at once."""

import pytest
from tests.support.peers.group_requests import GroupRequests

from ottla.errors.codes import ErrorCode
from ottla.testing import Broker


@pytest.mark.parametrize("crash", [False, True])
def test_committed_offsets_survive_restart_and_kill(crash: bool) -> None:
    with Broker() as broker:
        broker.create_topic("t", 3)
        with GroupRequests(broker.bootstrap_servers) as groups:
            for number in range(20):
                assert groups.commit(f"g{number}", {("t", 0): number, ("t", 2): 5}) == [0, 0]
            assert groups.commit("g3", {("t", 0): 33}, metadata="later") == [0]
        if crash:
            broker.kill()
            broker.start()
        else:
            broker.restart()
        with GroupRequests(broker.bootstrap_servers) as groups:
            assert groups.fetch("g3", "g7", "none") == {
                "g3": {("t", 0): 33, ("t", 2): 5},
                "g7": {("t", 0): 7, ("t", 2): 5},
                "none": {},
            }
            assert len(groups.listed()) == 20


def test_deleting_a_topic_deletes_its_committed_offsets() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        broker.create_topic("u")
        with GroupRequests(broker.bootstrap_servers) as groups:
            groups.commit("g", {("t", 0): 1, ("u", 0): 2})
            broker.delete_topic("t")
            broker.create_topic("t")
            assert groups.fetch("g") == {"g": {("u", 0): 2}}
        broker.restart()
        with GroupRequests(broker.bootstrap_servers) as groups:
            assert groups.fetch("g") == {"g": {("u", 0): 2}}


def test_commit_larger_than_a_batch_is_refused() -> None:
    with Broker({"offsets.topic.num.partitions": 1, "message.max.bytes": 20_000}) as broker:
        broker.create_topic("t", 300)
        with GroupRequests(broker.bootstrap_servers) as groups:
            all_at_once = {("t", index): 1 for index in range(300)}
            assert set(groups.commit("g", all_at_once)) == {ErrorCode.UNKNOWN_SERVER_ERROR}
            assert groups.fetch("g") == {"g": {}}
            assert any("max.message.bytes" in line for line in broker.log_lines), broker.log_lines
            for begin in range(0, 300, 100):
                assert set(groups.commit("g", {("t", index): 1 for index in range(begin, begin + 100)})) == {0}
            assert len(groups.fetch("g")["g"]) == 300
            assert groups.delete("g") == [0], "what is deleted needs no batch of its own"
            assert groups.fetch("g") == {"g": {}}
            assert groups.listed() == []
