"""Errors of Fetch responses: which are retried, which ask another broker, which reset, and which are told."""

from typing import Any

import pytest
from tests.support.machines.consumer_cluster import TOPIC, FakeCluster, known_metadata, place, settings

from ottla.client_core.consumer.fetch_errors import FetchErrors
from ottla.client_core.consumer.reset import EARLIEST, NO_RESET, Reset
from ottla.client_core.consumer.subscription import PartitionState, Phase, Position
from ottla.client_core.metadata import Metadata, Node
from ottla.errors import OffsetOutOfRangeError, TopicAuthorizationError, UnknownTopicIdError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.messages.fetch import LeaderIdAndEpoch, PartitionData

SETTINGS: Any = settings()
OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)


def machine(reset: Reset = EARLIEST) -> tuple[FetchErrors, Metadata]:
    metadata = known_metadata(FakeCluster())
    return FetchErrors(metadata, SETTINGS, reset), metadata


def reading(offset: int = 5, epoch: int = -1, buffered_bytes: int = 0) -> PartitionState:
    state = PartitionState(place(0))
    state.jump(Position(offset, epoch))
    state.received_bytes = buffered_bytes
    return state


def refuse(errors: FetchErrors, state: PartitionState, code: int, node_id: int = 1, **data: Any) -> None:
    errors.partition_refused(state, PartitionData(error_code=code, **data), node_id, [Node(3, "host-3", 9092)], 1_000)


def topic_id(metadata: Metadata) -> Uuid:
    info = metadata.topic(TOPIC)
    assert info is not None
    return info.id


def is_refresh_due(metadata: Metadata) -> bool:
    return metadata.step(10_000) != []


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID])
def test_a_moved_leader_refreshes_the_metadata_and_waits(code: int) -> None:
    errors, metadata = machine()
    state = reading()
    assert not is_refresh_due(metadata)
    refuse(errors, state, code)
    assert (state.phase, state.position, state.not_before_ms) == (Phase.FETCH, Position(5), 1_100)
    assert is_refresh_due(metadata)


def test_a_hint_about_the_new_leader_is_followed_at_once() -> None:
    errors, metadata = machine()
    state = reading()
    state.topic_id = topic_id(metadata)
    refuse(errors, state, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=4))
    assert metadata.leader(TOPIC, 0) == (3, 4)
    assert state.not_before_ms == 1_000


def test_a_late_hint_about_a_topic_that_was_made_again_is_ignored() -> None:
    errors, metadata = machine()
    state = reading()
    state.topic_id = OLD
    leader = metadata.leader(TOPIC, 0)
    refuse(errors, state, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=40))
    assert metadata.leader(TOPIC, 0) == leader
    assert state.not_before_ms == 1_100


def test_an_error_that_passes_is_tried_again_without_new_metadata() -> None:
    errors, metadata = machine()
    state = reading()
    refuse(errors, state, ErrorCode.UNKNOWN_LEADER_EPOCH)
    assert (state.phase, state.not_before_ms) == (Phase.FETCH, 1_100)
    assert not is_refresh_due(metadata)


@pytest.mark.parametrize(("reset", "is_strict"), [(EARLIEST, False), (EARLIEST, True), (NO_RESET, False)])
def test_an_offset_out_of_range_resets_or_fails_as_the_setting_says(reset: Reset, is_strict: bool) -> None:
    errors, _ = machine(reset)
    state = reading(5)
    state.is_strict = is_strict
    refuse(errors, state, ErrorCode.OFFSET_OUT_OF_RANGE)
    if reset == EARLIEST and not is_strict:
        assert (state.phase, state.reset, state.position) == (Phase.RESET, EARLIEST, None)
    else:
        assert state.phase is Phase.FAILED
        assert isinstance(state.error, OffsetOutOfRangeError)
        assert "offset 5 of t-0" in str(state.error)
        assert state.position == Position(5)


def test_a_follower_that_lacks_the_offset_sends_the_fetch_to_the_leader() -> None:
    errors, _ = machine()
    state = reading(5)
    state.preferred_node = 2
    refuse(errors, state, ErrorCode.OFFSET_OUT_OF_RANGE, node_id=2)
    assert (state.phase, state.preferred_node, state.not_before_ms) == (Phase.FETCH, -1, 1_000)
    refuse(errors, state, ErrorCode.OFFSET_OUT_OF_RANGE, node_id=1)
    assert state.phase is Phase.RESET


@pytest.mark.parametrize("code", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_an_error_waits_until_everything_buffered_is_read(code: int) -> None:
    errors, _ = machine(NO_RESET)
    state = reading(buffered_bytes=10)
    generation = state.generation
    refuse(errors, state, code)
    assert (state.phase, state.error, state.generation, state.not_before_ms) == (Phase.FETCH, None, generation, 1_100)
    state.consumed_bytes = 10
    refuse(errors, state, code)
    assert isinstance(state.error, (OffsetOutOfRangeError, TopicAuthorizationError))


@pytest.mark.parametrize("reset", [EARLIEST, NO_RESET])
def test_a_topic_that_was_made_again_starts_over_or_fails(reset: Reset) -> None:
    errors, _ = machine(reset)
    state = reading(5, buffered_bytes=10)
    assert not errors.is_other_topic(state, OLD)  # the first id that is seen belongs to the position
    assert state.topic_id == OLD != ZERO_UUID
    assert errors.is_other_topic(state, NEW)
    assert (state.phase, state.topic_id) == (Phase.FETCH, OLD)  # records of the old topic are still to be read
    state.consumed_bytes = 10
    assert errors.is_other_topic(state, NEW)
    assert state.topic_id == NEW
    if reset == EARLIEST:
        assert (state.phase, state.position) == (Phase.RESET, None)
    else:
        assert isinstance(state.error, UnknownTopicIdError)


def test_a_position_stays_when_a_lagging_broker_has_the_former_topic_id() -> None:
    cluster = FakeCluster()
    metadata = known_metadata(cluster)
    errors = FetchErrors(metadata, SETTINGS, EARLIEST)
    state = reading(5)
    former = cluster.topic_id
    for now_ms, topic_id, is_reset in ((0, former, False), (1_000, NEW, True), (2_000, former, False), (3_000, NEW, False)):
        cluster.topic_id = topic_id
        metadata.refresh("a test")
        for request in metadata.step(now_ms):
            metadata.answered(request, *cluster.answer(request), now_ms)
        info = metadata.topic(TOPIC)
        assert info is not None
        assert errors.is_other_topic(state, info.id) is is_reset
        state.jump(Position(5))


def test_a_newer_leader_has_the_position_validated_if_its_epoch_is_known() -> None:
    errors, _ = machine()
    known, unknown = reading(5, epoch=3), reading(5)
    assert errors.new_leader(known, 4)
    assert (known.phase, known.validated_epoch) == (Phase.VALIDATE, -1)
    assert not errors.new_leader(unknown, 4)
    assert (unknown.phase, unknown.validated_epoch) == (Phase.FETCH, 4)


def test_a_lost_session_is_no_reason_to_wait_but_other_refusals_are() -> None:
    errors, metadata = machine()
    assert not errors.session_refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert errors.session_refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert not is_refresh_due(metadata)
    assert errors.session_refused(ErrorCode.UNKNOWN_TOPIC_ID)
    assert is_refresh_due(metadata)
