"""The controller's decisions on partitions with several replicas: Apache Kafka and Ottla make the same ones.

The brokers are pretended (tests/support/peers/pretended_brokers.py): what counts is which leader, ISR and ELR the controller
chooses, and with which codes it refuses a leader's proposals.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.support.peers.pretended_brokers import PretendedBrokers, Seen
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer

from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid

PREFERRED, UNCLEAN = 0, 1
RECOVERING = 1
_ids = count(81)


@pytest.fixture(scope="module")
def server(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with start_server({"broker.session.timeout.ms": 10_000}, data_dir=tmp_path_factory.mktemp("data")) as started:
        yield started


@pytest.fixture
def brokers(server: KafkaServer) -> Iterator[PretendedBrokers]:
    """Brokers with other ids for each test."""
    with PretendedBrokers(server) as pretended:
        yield pretended


def with_topic(brokers: PretendedBrokers, name: str, **configs: str) -> list[int]:
    """Four brokers, and a topic with replicas on the first three."""
    a, b, c, _ = ids = [next(_ids) for _ in range(4)]
    for broker_id in ids:
        brokers.add(broker_id)
    brokers.create(name, [[a, b, c]], **configs)
    brokers.await_seen(name, Seen(a, 0, [a, b, c], [], []))
    return ids


def test_proposals_of_leaders(brokers: PretendedBrokers) -> None:
    a, b, c, d = with_topic(brokers, "proposals", min_insync_replicas="2")
    shrunk = brokers.alter("proposals", a, [a])
    assert (shrunk.error_code, shrunk.leader_id, shrunk.isr) == (ErrorCode.NONE, a, [a])
    assert (shrunk.leader_epoch, shrunk.partition_epoch, shrunk.leader_recovery_state) == (0, 1, 0)
    brokers.await_seen("proposals", Seen(a, 0, [a], [b, c], []))
    codes = {
        "older partition epoch": brokers.alter("proposals", a, [a, b], partition_epoch=0),
        "newer partition epoch": brokers.alter("proposals", a, [a, b], partition_epoch=2),
        "older leader epoch": brokers.alter("proposals", a, [a, b], partition_epoch=1, leader_epoch=-1),
        "newer leader epoch": brokers.alter("proposals", a, [a, b], partition_epoch=1, leader_epoch=1),
        "not the leader": brokers.alter("proposals", b, [a, b], partition_epoch=1),
        "not the leader, older epoch": brokers.alter("proposals", b, [a, b], partition_epoch=0),
        "not a replica": brokers.alter("proposals", a, [a, d], partition_epoch=1),
        "without the leader": brokers.alter("proposals", a, [b], partition_epoch=1),
        "a replica twice": brokers.alter("proposals", a, [a, b, b], partition_epoch=1),
        "empty": brokers.alter("proposals", a, [], partition_epoch=1),
        "recovering": brokers.alter("proposals", a, [a], partition_epoch=1, leader_recovery_state=RECOVERING),
        "older broker epoch": brokers.alter("proposals", a, [a, b], partition_epoch=1, epochs={b: 0}),
        "unknown partition": brokers.alter("proposals", a, [a, b], partition_epoch=1, partition_index=1),
        "unknown topic": brokers.alter(Uuid(b"no such topic id"), a, [a, b], partition_epoch=1),
        "older epoch of the sender": brokers.alter("proposals", a, [a, b], partition_epoch=1, broker_epoch=0),
        "unknown sender": brokers.alter("proposals", 7777, [a, b], partition_epoch=1),
        "unchanged": brokers.alter("proposals", a, [a], partition_epoch=1),
        "unchecked broker epoch": brokers.alter("proposals", a, [a, b], partition_epoch=1, epochs={b: -1}),
        "version 2": brokers.alter("proposals", a, [a, b, c], version=2, partition_epoch=2),
    }
    assert {name: result.error_code for name, result in codes.items()} == {
        "older partition epoch": ErrorCode.INVALID_UPDATE_VERSION,
        "newer partition epoch": ErrorCode.NOT_CONTROLLER,
        "older leader epoch": ErrorCode.FENCED_LEADER_EPOCH,
        "newer leader epoch": ErrorCode.NOT_CONTROLLER,
        "not the leader": ErrorCode.INVALID_REQUEST,
        "not the leader, older epoch": ErrorCode.INVALID_REQUEST,
        "not a replica": ErrorCode.INVALID_REQUEST,
        "without the leader": ErrorCode.INVALID_REQUEST,
        "a replica twice": ErrorCode.INVALID_REQUEST,
        "empty": ErrorCode.INVALID_REQUEST,
        "recovering": ErrorCode.INVALID_REQUEST,
        "older broker epoch": ErrorCode.INELIGIBLE_REPLICA,
        "unknown partition": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "unknown topic": ErrorCode.UNKNOWN_TOPIC_ID,
        "older epoch of the sender": ErrorCode.STALE_BROKER_EPOCH,
        "unknown sender": ErrorCode.STALE_BROKER_EPOCH,
        "unchanged": ErrorCode.NONE,
        "unchecked broker epoch": ErrorCode.NONE,
        "version 2": ErrorCode.NONE,
    }
    assert (codes["unchanged"].partition_epoch, codes["version 2"].partition_epoch) == (1, 3)
    brokers.await_seen("proposals", Seen(a, 0, [a, b, c], [], []))


def test_brokers_that_come_and_go(brokers: PretendedBrokers) -> None:
    """Fenced, shut down, crashed: who leads, who is in sync, who is eligible."""
    a, b, c, _ = with_topic(brokers, "moving", min_insync_replicas="2")
    assert brokers.alter("moving", a, [a]).error_code == ErrorCode.NONE
    brokers.stop(a)
    brokers.await_seen("moving", Seen(b, 1, [b], [a, c], []))
    assert brokers.alter("moving", a, [a, b], partition_epoch=2).error_code == ErrorCode.FENCED_LEADER_EPOCH
    now = {"leader_epoch": 1, "partition_epoch": 2}
    assert brokers.alter("moving", b, [b, a], **now).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert brokers.alter("moving", b, [b, c], **now).error_code == ErrorCode.NONE
    brokers.await_seen("moving", Seen(b, 1, [b, c], [], []))
    brokers.silence(c)
    left = brokers.heartbeat(c, want_shut_down=True)
    assert (left.should_shut_down, left.is_fenced) == (True, True), "it leads nothing"
    brokers.await_seen("moving", Seen(b, 1, [b], [c], []))
    brokers.register(c)  # after a crash
    brokers.await_seen("moving", Seen(b, 1, [b], [], []))
    brokers.stop(b)
    brokers.await_seen("moving", Seen(-1, 2, [], [b], [b]))
    brokers.unfence(c)
    brokers.await_seen("moving", Seen(-1, 2, [], [b], [b]))
    brokers.register(b)  # after a crash
    brokers.await_seen("moving", Seen(-1, 2, [], [], [b]))
    brokers.unfence(b)
    brokers.await_seen("moving", Seen(b, 3, [b], [], []))
    now = {"leader_epoch": 3, "partition_epoch": 8}
    refused = brokers.alter("moving", b, [b, c], leader_recovery_state=RECOVERING, **now)
    assert refused.error_code == ErrorCode.INVALID_REQUEST, "nobody is in sync with a leader that recovers"
    recovered = brokers.alter("moving", b, [b, c], **now)
    assert (recovered.error_code, recovered.isr, recovered.partition_epoch) == (ErrorCode.NONE, [b, c], 9)
    brokers.await_seen("moving", Seen(b, 3, [b, c], [], []))


def test_eligible_replica_leads_again_after_a_clean_shutdown(brokers: PretendedBrokers) -> None:
    a, b, c, _ = with_topic(brokers, "clean", min_insync_replicas="3")
    brokers.stop(c)
    brokers.stop(b)
    epoch = brokers.epochs[a]
    brokers.stop(a)
    brokers.await_seen("clean", Seen(-1, 1, [], [a, b, c], [a]))
    brokers.register(a, previous_epoch=epoch)
    brokers.unfence(a)
    brokers.await_seen("clean", Seen(a, 2, [a], [b, c], []))


def test_controlled_shutdown_of_a_leader(brokers: PretendedBrokers) -> None:
    a, b, c, _ = with_topic(brokers, "shutdown")
    brokers.silence(a)
    asked = brokers.heartbeat(a, want_shut_down=True)
    assert (asked.should_shut_down, asked.is_fenced) == (False, False)
    brokers.await_seen("shutdown", Seen(b, 1, [b, c], [], []))
    now = {"leader_epoch": 1, "partition_epoch": 1}
    assert brokers.alter("shutdown", b, [b, c, a], **now).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_unclean_election(brokers: PretendedBrokers) -> None:
    """By an operator; or at once, where the topic allows it."""
    a, b, c, _ = with_topic(brokers, "forced")
    assert brokers.alter("forced", a, [a]).error_code == ErrorCode.NONE
    assert brokers.elect("forced", UNCLEAN) == ErrorCode.ELECTION_NOT_NEEDED
    brokers.stop(a)
    brokers.await_seen("forced", Seen(-1, 1, [], [a], [a]))
    assert brokers.elect("forced", PREFERRED) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert brokers.elect("forced", UNCLEAN) == ErrorCode.NONE
    brokers.await_seen("forced", Seen(b, 2, [b], [], []))
    brokers.create("allowed", [[b, c]], unclean_leader_election_enable="true")
    brokers.await_seen("allowed", Seen(b, 0, [b, c], [], []))
    assert brokers.alter("allowed", b, [b]).error_code == ErrorCode.NONE
    brokers.stop(b)
    brokers.await_seen("allowed", Seen(c, 1, [c], [], []))


def test_preferred_election(brokers: PretendedBrokers) -> None:
    a, b, c, _ = with_topic(brokers, "preferred")
    assert brokers.elect("preferred", PREFERRED) == ErrorCode.ELECTION_NOT_NEEDED
    brokers.fence(a)
    brokers.await_seen("preferred", Seen(b, 1, [b, c], [], []))
    brokers.unfence(a)
    assert brokers.elect("preferred", PREFERRED) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert brokers.alter("preferred", b, [b, c, a], leader_epoch=1, partition_epoch=1).error_code == ErrorCode.NONE
    assert brokers.elect("preferred", PREFERRED) == ErrorCode.NONE
    brokers.await_seen("preferred", Seen(a, 2, [b, c, a], [], []))


def test_reassignments(brokers: PretendedBrokers) -> None:
    """Completed by a leader's proposal, which may depose it; cancelled."""
    a, b, c, d = with_topic(brokers, "moved")
    assert brokers.reassign("moved", None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert brokers.reassign("moved", [a, 7777]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert brokers.reassign("moved", [a, d]) == ErrorCode.NONE
    brokers.await_seen("moved", Seen(a, 0, [a, b, c], [], []))
    assert brokers.reassign("moved", None) == ErrorCode.NONE
    brokers.await_seen("moved", Seen(a, 1, [a, b, c], [], []))
    assert brokers.reassign("moved", [a, d]) == ErrorCode.NONE
    done = brokers.alter("moved", a, [a, b, c, d], leader_epoch=1, partition_epoch=3)
    assert (done.error_code, done.isr, done.leader_epoch) == (ErrorCode.NONE, [a, d], 2)
    brokers.await_seen("moved", Seen(a, 2, [a, d], [], []))
    assert brokers.reassign("moved", [b]) == ErrorCode.NONE
    deposed = brokers.alter("moved", a, [a, d, b], leader_epoch=2, partition_epoch=5)
    assert deposed.error_code == ErrorCode.NEW_LEADER_ELECTED
    brokers.await_seen("moved", Seen(b, 3, [b], [], []))


def test_controller_elects_by_itself(start_server: StartServer, tmp_path: Path) -> None:
    """Preferred leaders that are in sync again; leaders out of sync, when the topic's setting changes."""
    settings = {
        "broker.session.timeout.ms": 10_000,
        "leader.imbalance.check.interval.seconds": 1,
        "unclean.leader.election.interval.ms": 500,
    }
    with start_server(settings, data_dir=tmp_path) as server, PretendedBrokers(server) as brokers:
        a, b, c, _ = with_topic(brokers, "balanced")
        brokers.fence(a)
        brokers.await_seen("balanced", Seen(b, 1, [b, c], [], []))
        brokers.unfence(a)
        assert brokers.alter("balanced", b, [b, c, a], leader_epoch=1, partition_epoch=1).error_code == ErrorCode.NONE
        brokers.await_seen("balanced", Seen(a, 2, [b, c, a], [], []))
        brokers.create("lost", [[b, c]])
        assert brokers.alter("lost", b, [b]).error_code == ErrorCode.NONE
        brokers.stop(b)
        brokers.await_seen("lost", Seen(-1, 1, [], [b], [b]))
        brokers.configure("lost", unclean_leader_election_enable="true")
        brokers.await_seen("lost", Seen(c, 2, [c], [], []))
