"""Positions: where new partitions start, what a reset finds, and what a new leader's log says of a position."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.support.machines.consumer_cluster import TOPIC, FakeCluster, known_metadata, no_chance, place, settings
from tests.support.machines.open_connections import OpenConnections

from ottla.client_core.consumer.commits import CommittedQuery
from ottla.client_core.consumer.offset_lister import OffsetAndTimestamp, OffsetLister, OffsetQuery
from ottla.client_core.consumer.positions import Positions
from ottla.client_core.consumer.settings import EARLIEST, LATEST, NO_RESET, Reset
from ottla.client_core.consumer.subscription import PartitionState, Phase, Position, Subscription
from ottla.client_core.machine import Channel, Connect, Request
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import (
    GroupAuthorizationError,
    LogTruncationError,
    NetworkError,
    NoOffsetForPartitionError,
    SaslAuthenticationError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

WALL_MS = 1_000_000
SETTINGS: Any = settings()


class Committed:
    """Remembers what was asked; the test answers."""

    def __init__(self) -> None:
        self.queries: list[CommittedQuery] = []

    def ask(self, partitions: Iterable[TopicPartition]) -> CommittedQuery:
        self.queries.append(CommittedQuery(partitions))
        return self.queries[-1]

    def drop(self, query: Any) -> None:
        self.queries.remove(query)


class World:
    """The positions of partitions 0 and 1, which are new."""

    def __init__(self, reset: Reset = EARLIEST, *, has_group: bool = False) -> None:
        self.metadata = known_metadata(FakeCluster())
        self.subscription = Subscription()
        self.subscription.assign([place(0), place(1)])
        self.lister = OffsetLister(self.metadata, SETTINGS, no_chance)
        self.committed = Committed() if has_group else None
        self.positions = Positions(
            self.subscription, self.metadata, SETTINGS, self.lister, reset, lambda: WALL_MS, self.committed
        )

    def state(self, partition: int = 0) -> PartitionState:
        return self.subscription.state(place(partition))

    def step(self, now_ms: int = 0) -> list[Request]:
        return self.positions.step(now_ms)

    @property
    def query(self) -> OffsetQuery:
        return self.lister._queries[-1]

    @property
    def committed_query(self) -> CommittedQuery:
        assert self.committed is not None
        return self.committed.queries[-1]


def validating(reset: Reset = EARLIEST) -> tuple[World, Request]:
    """Partition 0 was read up to offset 10 in epoch 3, and its new leader of epoch 5 is asked."""
    world = World(reset)
    world.state(1).jump(Position(0))
    world.metadata.learn_leader(TOPIC, 0, 2, 5)
    world.state().jump(Position(10, 3))
    world.state().phase = Phase.VALIDATE
    (request,) = world.step()
    return world, request


def answer(world: World, request: Request, **data: Any) -> None:
    topic = OffsetForLeaderTopicResult(topic=TOPIC, partitions=[EpochEndOffset(partition=0, **data)])
    world.positions.answered(request, OffsetForLeaderEpochResponse(topics=[topic]), 4, 1_000)


def test_partitions_start_at_their_committed_offsets_else_at_the_reset() -> None:
    world = World(LATEST, has_group=True)
    world.step()
    query = world.committed_query
    assert query.partitions == [place(0), place(1)]
    query.found, query.is_done = {place(0): OffsetAndMetadata(42, "", 3), place(1): None}, True
    world.step()
    assert (world.state(0).phase, world.state(0).position) == (Phase.FETCH, Position(42, 3))
    assert (world.state(1).phase, world.query.timestamps) == (Phase.RESET, {place(1): -1})


def test_a_committed_offset_that_comes_after_a_seek_is_dropped() -> None:
    world = World(has_group=True)
    world.step()
    world.state(0).jump(Position(7))
    query = world.committed_query
    query.found, query.is_done = {place(0): OffsetAndMetadata(42), place(1): OffsetAndMetadata(43)}, True
    world.step()
    assert (world.state(0).position, world.state(1).position) == (Position(7), Position(43))


def test_partitions_that_come_later_are_asked_for_by_themselves() -> None:
    world = World(has_group=True)
    world.step()
    first = world.committed_query
    world.subscription.assign([place(0), place(1), place(2)])
    world.step()
    assert world.committed_query is first  # one query at a time
    first.found, first.is_done = {place(0): OffsetAndMetadata(42), place(1): OffsetAndMetadata(43)}, True
    world.step()
    assert world.committed_query.partitions == [place(2)]


def test_committed_offsets_that_cannot_be_read_fail_the_partitions() -> None:
    world = World(has_group=True)
    world.step()
    query = world.committed_query
    query.error, query.is_done = GroupAuthorizationError("group g"), True
    world.step()
    assert [state.error for state in world.subscription.errors()] == [query.error, query.error]


@pytest.mark.parametrize(("has_group", "why"), [(True, "its group has committed none"), (False, "the consumer has no group")])
def test_without_an_offset_and_a_reset_the_partition_fails(has_group: bool, why: str) -> None:
    world = World(NO_RESET, has_group=has_group)
    world.step()
    if has_group:
        world.committed_query.is_done = True
        world.step()
    error = world.state().error
    assert isinstance(error, NoOffsetForPartitionError)
    assert f"t-0 has no position: {why}" in str(error)


def test_a_reset_goes_where_the_lister_finds_it() -> None:
    world = World(Reset("by_duration", 400_000))
    world.step()
    assert world.query.timestamps == {place(0): 600_000, place(1): 600_000}
    world.query.found = {place(0): OffsetAndTimestamp(17, 600_001, 2)}
    world.query.errors = {place(1): TopicAuthorizationError("topic t")}
    world.step()
    assert (world.state(0).phase, world.state(0).position) == (Phase.FETCH, Position(17, 2))
    assert isinstance(world.state(1).error, TopicAuthorizationError)


def test_a_time_without_records_resets_to_the_end() -> None:
    world = World(Reset("time", 5))
    world.state(1).jump(Position(0))
    world.step()
    assert world.query.timestamps == {place(0): 5}
    world.query.found = {place(0): None}
    world.step()
    assert (world.state().reset, world.query.timestamps) == (LATEST, {place(0): -1})


def test_a_position_that_the_new_leader_holds_is_read_on() -> None:
    world, request = validating()
    message: Any = request.message
    (data,) = message.topics[0].partitions
    assert (request.node, message.replica_id, data.partition) == (2, -1, 0)
    assert (data.current_leader_epoch, data.leader_epoch) == (5, 3)
    assert world.step() == []
    answer(world, request, leader_epoch=3, end_offset=10)
    assert (world.state().phase, world.state().position, world.state().validated_epoch) == (Phase.FETCH, Position(10, 3), 5)


def test_a_truncated_log_moves_the_position_back_to_where_it_ends() -> None:
    world, request = validating()
    answer(world, request, leader_epoch=2, end_offset=8)
    assert world.state().phase is Phase.FETCH
    assert world.state().position == Position(8)


def test_a_truncated_log_fails_the_partition_without_a_reset() -> None:
    world, request = validating(NO_RESET)
    answer(world, request, leader_epoch=2, end_offset=8)
    error = world.state().error
    assert isinstance(error, LogTruncationError)
    assert (error.positions, error.diverging) == ({place(0): 10}, {place(0): 8})


@pytest.mark.parametrize("reset", [EARLIEST, NO_RESET])
def test_an_epoch_that_the_leader_never_had_resets_or_fails(reset: Reset) -> None:
    world, request = validating(reset)
    answer(world, request, leader_epoch=-1, end_offset=-1)
    if reset == EARLIEST:
        assert (world.state().phase, world.state().reset) == (Phase.RESET, EARLIEST)
    else:
        error = world.state().error
        assert isinstance(error, LogTruncationError)
        assert error.diverging == {}


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_validation_that_cannot_be_answered_now_is_repeated(is_lost: bool) -> None:
    world, request = validating()
    if is_lost:
        world.positions.failed(request, NetworkError("the connection was lost"), 1_000)
    else:
        answer(world, request, error_code=ErrorCode.FENCED_LEADER_EPOCH)
    assert world.metadata.step(1_000)
    assert world.step(1_099) == []
    assert world.positions.next_deadline_ms() == 1_100
    assert len(world.step(1_100)) == 1


def test_a_broker_too_old_to_validate_is_read_on_and_a_refusal_is_told() -> None:
    world, request = validating()
    world.positions.failed(request, UnsupportedVersionError("too old"), 1_000)
    assert (world.state().phase, world.state().validated_epoch) == (Phase.FETCH, 5)
    world, request = validating()
    answer(world, request, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert isinstance(world.state().error, TopicAuthorizationError)


def test_a_validation_from_before_a_seek_is_dropped() -> None:
    world, request = validating()
    world.state().jump(Position(2))
    answer(world, request, leader_epoch=2, end_offset=1)
    assert (world.state().phase, world.state().position) == (Phase.FETCH, Position(2))


def test_outcomes_that_other_machines_find_in_their_steps_are_taken_at_once() -> None:
    world = World(has_group=True)
    world.step()
    assert world.positions.next_deadline_ms() is None
    assert world.committed is not None
    (query,) = world.committed.queries
    query.error, query.is_done = GroupAuthorizationError("a test"), True
    assert world.positions.next_deadline_ms() == 0
    world.step()
    assert world.positions.next_deadline_ms() is None
    world = World()
    world.step()
    assert world.positions.next_deadline_ms() is None
    world.query.errors[place(0)] = TopicAuthorizationError("a test")
    assert world.positions.next_deadline_ms() == 0
    world.step()
    assert world.positions.next_deadline_ms() is None


def to_validate() -> tuple[World, OpenConnections]:
    """Partition 0 was read in epoch 3, and its leader of epoch 5, node 2, is not connected."""
    world = World()
    connections = world.positions.connecting.connections = OpenConnections()
    world.metadata.learn_leader(TOPIC, 0, 2, 5)
    world.state().jump(Position(10, 3))
    world.state().phase = Phase.VALIDATE
    return world, connections


def test_a_position_is_validated_when_the_new_leader_is_connected() -> None:
    world, connections = to_validate()
    (request,) = world.step()
    assert (type(request), request.node) == (Connect, 2)
    assert world.step(10) == []
    connections.open.add((2, Channel.DATA))
    world.positions.answered(request, None, 0, 20)
    (asked,) = world.step(20)
    assert not isinstance(asked, Connect)
    assert asked.node == 2


def test_a_validation_follows_the_leader_while_another_cannot_be_connected_to() -> None:
    world, connections = to_validate()
    world.step()
    connections.open.add((1, Channel.DATA))
    world.metadata.learn_leader(TOPIC, 0, 1, 6)
    (asked,) = world.step(10)
    assert (asked.node, isinstance(asked, Connect)) == (1, False)


def test_a_validation_waits_after_a_failed_connection_and_fails_with_the_login() -> None:
    world, _ = to_validate()
    (request,) = world.step()
    world.positions.failed(request, NetworkError("refused"), 0)
    assert world.step(1) == []
    deadline_ms = world.positions.next_deadline_ms()
    assert deadline_ms is not None
    (again,) = world.step(deadline_ms)
    error = SaslAuthenticationError("wrong password")
    world.positions.failed(again, error, deadline_ms)
    assert world.state().error is error
