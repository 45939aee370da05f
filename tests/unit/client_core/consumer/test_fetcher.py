"""The fetcher: when a broker is asked, for which partitions, and what becomes of its answers."""

from struct import pack_into
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.machines.consumer_cluster import (
    FETCH_VERSION,
    TOPIC,
    FakeCluster,
    known_metadata,
    no_chance,
    place,
    settings,
)
from tests.support.machines.open_connections import OpenConnections

from ottla.client_core.consumer.fetcher import Fetcher, FetchErrors
from ottla.client_core.consumer.settings import EARLIEST, NO_RESET, Reset
from ottla.client_core.consumer.subscription import PartitionState, Phase, Position, Subscription
from ottla.client_core.machine import Channel, Connect, Request
from ottla.client_core.metadata import Metadata, Node
from ottla.errors import (
    NetworkError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    SaslAuthenticationError,
    TopicAuthorizationError,
    UnknownTopicIdError,
)
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.records.checksum import crc32c
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, LeaderIdAndEpoch, PartitionData


class World:
    """A fetcher of two partitions at offset 0, and the cluster that it reads."""

    def __init__(self, **changes: Any) -> None:
        chosen: Any = settings(**changes)
        self.cluster = FakeCluster()
        self.metadata: Metadata = known_metadata(self.cluster)
        self.subscription = Subscription()
        self.subscription.assign([place(0), place(1)])
        for state in self.subscription.partitions.values():
            state.jump(Position(0))
        self.fetcher = Fetcher(
            self.subscription, self.metadata, chosen, FetchErrors(self.metadata, chosen, EARLIEST), no_chance
        )

    def state(self, partition: int) -> PartitionState:
        return self.subscription.state(place(partition))

    def sent(self, now_ms: int = 1_000) -> Request:
        (request,) = self.fetcher.step(now_ms)
        return request

    def fetch(self) -> None:
        """Send one request and answer it."""
        request = self.sent()
        response, version = self.cluster.answer(request)
        self.fetcher.answered(request, response, version, 1_000)

    def answer(self, request: Request, now_ms: int = 1_000, **data: Any) -> None:
        """Answer for partition 0."""
        topic = FetchableTopicResponse(topic_id=self.cluster.topic_id, partitions=[PartitionData(**data)])
        self.fetcher.answered(request, FetchResponse(session_id=9, responses=[topic]), FETCH_VERSION, now_ms)


def asked(request: Request) -> dict[int, int]:
    message: Any = request.message
    return {data.partition: data.fetch_offset for topic in message.topics for data in topic.partitions}


def test_one_request_per_broker_names_every_partition_of_it() -> None:
    world = World(isolation_level="read_committed", client_rack="r")
    request = world.sent()
    message: Any = request.message
    assert (request.node, request.channel, asked(request)) == (1, Channel.FETCH, {0: 0, 1: 0})
    assert (message.isolation_level, message.rack_id, message.session_epoch) == (1, "r", 0)
    assert request.timeout_ms == 30_500  # a broker may park it for fetch.max.wait.ms
    assert world.fetcher.step(9_000) == []


def test_partitions_of_two_leaders_are_fetched_side_by_side() -> None:
    world = World()
    world.metadata.learn_leader("t", 1, 2, 1)
    assert {request.node: asked(request) for request in world.fetcher.step(0)} == {1: {0: 0}, 2: {1: 0}}


def test_a_paused_or_failed_partition_is_not_fetched() -> None:
    world = World()
    world.state(0).is_paused = True
    assert asked(world.sent()) == {1: 0}
    world = World()
    world.state(1).fail(NetworkError("a test"))
    assert asked(world.sent()) == {0: 0}


def test_an_answer_is_buffered_and_the_next_fetch_goes_on_behind_it() -> None:
    world = World()
    world.cluster.partitions[0].append([b"a", b"b"])
    world.fetch()
    (ready,) = world.fetcher.ready
    state = world.state(0)
    assert (ready.state, state.position, state.fetch_position, state.end_offset) == (state, Position(0), Position(2, 0), 2)
    assert state.buffered_bytes > 0
    assert asked(world.sent()) == {0: 2}


def test_one_answer_is_fetched_while_another_waits_to_be_read() -> None:
    world = World()
    for _ in range(3):
        world.cluster.partitions[0].append([b"a"])
        world.cluster.partitions[1].append([b"b"])
        if len(world.fetcher.ready) < 4:
            world.fetch()
    assert [each.is_last for each in world.fetcher.ready] == [False, True, False, True]
    assert world.fetcher.step(1_000) == []  # two answers wait
    world.fetcher.ready.popleft().take([], 10)
    assert world.fetcher.step(1_000) == []
    world.fetcher.ready.popleft().take([], 10)
    assert asked(world.sent()) == {0: 2, 1: 2}


def test_a_partition_with_a_full_buffer_is_left_out() -> None:
    world = World(max_partition_fetch_bytes=50)
    world.cluster.partitions[0].append([b"a"])
    for _ in range(4):
        world.cluster.partitions[1].append([b"b" * 100])
    world.fetch()
    first = world.fetcher.ready.popleft()
    assert first.state is world.state(0)
    second = world.fetcher.ready[0]
    second.take([], 1)
    assert world.state(0).buffered_bytes >= 50
    message: Any = world.sent().message
    assert [topic.partitions for topic in message.forgotten_topics_data] == [[0]]


def test_an_answer_from_before_a_seek_is_dropped() -> None:
    world = World()
    world.cluster.partitions[0].append([b"a", b"b"])
    request = world.sent()
    world.state(0).jump(Position(1))
    response, version = world.cluster.answer(request)
    world.fetcher.answered(request, response, version, 1_000)
    assert not world.fetcher.ready
    assert world.state(0).fetch_position == Position(1)


def test_a_late_answer_of_the_former_leader_is_dropped() -> None:
    world = World()
    world.state(1).is_paused = True
    world.cluster.partitions[0].append([b"a", b"b"])
    late = world.sent()
    world.metadata.learn_leader("t", 0, 2, 1)  # the former leader's answer is still on its way
    world.cluster.partitions[0].leader = 2
    world.fetch()
    assert world.state(0).fetch_position == Position(2, 0)
    response, version = world.cluster.answer(late)
    world.fetcher.answered(late, response, version, 1_000)
    assert len(world.fetcher.ready) == 1, "the records were read from the next leader"
    assert world.state(0).fetch_position == Position(2, 0)


def test_a_late_error_of_the_former_leader_is_dropped() -> None:
    world = World()
    world.state(1).is_paused = True
    world.cluster.partitions[0].append([b"a", b"b"])
    late = world.sent()
    world.metadata.learn_leader("t", 0, 2, 1)
    world.cluster.partitions[0].leader = 2
    world.fetch()
    state = world.state(0)
    state.position, state.consumed_bytes = state.fetch_position, state.received_bytes  # all is read
    world.answer(late, partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    assert state.phase is Phase.FETCH


def test_a_lost_connection_waits_refreshes_and_starts_a_full_session() -> None:
    world = World()
    world.fetch()
    world.fetcher.failed(world.sent(), NetworkError("the connection was lost"), 1_000)
    assert world.metadata.step(1_000)
    assert world.fetcher.step(1_099) == []
    assert world.fetcher.next_deadline_ms() == 1_100
    message: Any = world.sent(1_100).message
    assert message.session_epoch == 0


@pytest.mark.parametrize("is_answered", [True, False])
def test_closing_ends_the_sessions_that_are_open(is_answered: bool) -> None:
    world = World()
    world.fetch()
    parked = world.sent()
    (session_id,) = world.cluster.sessions
    world.fetcher.close()
    assert not world.fetcher.is_closed
    request = world.sent()
    message: Any = request.message
    assert (message.session_id, message.session_epoch, message.topics) == (session_id, -1, [])
    assert (request.node, request.channel) == (1, Channel.DATA)  # not behind the fetch that the broker has parked
    if is_answered:
        world.fetcher.answered(request, FetchResponse(), FETCH_VERSION, 1_000)
    else:
        world.fetcher.failed(request, NetworkError("the connection was lost"), 1_000)
    assert world.fetcher.is_closed
    world.fetcher.failed(parked, NetworkError("the connection was lost"), 1_000)
    assert world.fetcher.step(100_000) == []


def test_closing_without_a_session_sends_nothing() -> None:
    world = World()
    world.fetcher.close()
    assert world.fetcher.is_closed
    assert world.fetcher.step(1_000) == []


def test_an_error_that_no_retry_mends_stops_all_fetches() -> None:
    world = World()
    error = SaslAuthenticationError("wrong password")
    world.fetcher.failed(world.sent(), error, 1_000)
    assert world.fetcher.error is error
    assert world.fetcher.step(100_000) == []


def test_a_session_that_the_broker_lost_is_opened_again_at_once() -> None:
    world = World()
    world.fetch()
    world.cluster.sessions.clear()
    world.fetch()
    assert asked(world.sent()) == {0: 0, 1: 0}


def test_the_nearest_replica_is_read_until_the_metadata_is_old() -> None:
    world = World(metadata_max_age_ms=5_000)
    world.state(1).is_paused = True
    world.answer(world.sent(), preferred_read_replica=2)
    request = world.sent(5_999)
    assert request.node == 2
    world.answer(request)
    assert world.sent(6_000).node == 1


def test_the_metadata_is_refreshed_for_a_nearest_replica_that_is_not_known() -> None:
    world = World(client_rack="r")
    world.answer(world.sent(), partition_index=0, preferred_read_replica=3)
    assert not world.metadata._is_refresh_due
    assert world.sent().node == 1
    assert world.metadata._is_refresh_due, "the leader sends no records as long as the replica can be read"


def test_a_leader_older_than_the_position_is_not_asked() -> None:
    world = World()
    world.state(1).is_paused = True
    world.state(0).jump(Position(7, 5))  # committed by a member that read from the leader of epoch 5
    assert world.fetcher.step(1_000) == []
    assert world.metadata._is_refresh_due
    world.metadata.learn_leader("t", 0, 2, 5)
    assert (world.sent().node, world.state(0).position) == (2, Position(7, 5))


def test_a_position_from_an_epoch_that_nobody_knows_is_asked_for_in_the_end() -> None:
    world = World()
    world.state(1).is_paused = True
    world.state(0).jump(Position(7, 5))  # of a topic that was deleted and created again
    for _ in range(5):
        assert world.fetcher.step(1_000) == []
        world.metadata.full_responses += 1
    assert world.sent().node == 1


def test_a_replica_that_refuses_sends_the_fetch_back_to_the_leader() -> None:
    world = World()
    world.state(1).is_paused = True
    world.answer(world.sent(), preferred_read_replica=2)
    world.answer(world.sent(), error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert world.fetcher.step(1_000) == []
    assert world.fetcher.next_deadline_ms() == 1_100
    assert world.sent(1_100).node == 1


def test_a_new_leader_is_not_asked_before_the_position_is_validated() -> None:
    world = World()
    world.state(1).is_paused = True
    world.cluster.partitions[0].append([b"a"])
    world.fetch()
    world.metadata.learn_leader("t", 0, 2, 1)
    assert world.fetcher.step(1_000) == []
    assert world.state(0).phase is Phase.FETCH  # the record in the buffer comes first
    world.fetcher.ready[0].take([], 1)
    assert world.fetcher.step(1_000) == []
    assert (world.state(0).phase, world.state(0).position) == (Phase.VALIDATE, Position(1, 0))


def test_a_batch_that_does_not_fit_into_an_answer_fails_the_partition() -> None:
    world = World()
    world.answer(world.sent(), records=b"x" * 20)
    error = world.state(0).error
    assert isinstance(error, RecordTooLargeError)
    assert "offset 0 of t-0" in str(error)
    assert "max.partition.fetch.bytes" in str(error)


def test_a_partition_to_validate_has_the_machines_asked_again_at_once() -> None:
    world = World()
    for partition in range(2):
        world.state(partition).jump(Position(5, 1))
        world.metadata.learn_leader("t", partition, 2, 7)
    assert world.fetcher.step(1_000) == []
    assert world.state(0).phase is Phase.VALIDATE
    assert world.fetcher.next_deadline_ms() == 1_000, "the machine that validates had its turn before the fetcher"
    assert world.fetcher.step(1_001) == []
    assert world.fetcher.next_deadline_ms() is None


def test_nothing_beyond_a_range_is_fetched() -> None:
    world = World(max_partition_fetch_bytes=1 << 30)
    world.state(0).until = 100
    world.state(1).until = 0
    message: Any = world.sent().message
    (data,) = message.topics[0].partitions
    assert (data.partition, data.partition_max_bytes) == (0, 100 * 1024 + 64 * 1024)
    world = World(max_partition_fetch_bytes=1000)
    world.state(0).until = 100
    assert {data.partition_max_bytes for topic in world.sent().message.topics for data in topic.partitions} == {1000}


def test_an_empty_answer_says_from_where_on_there_is_nothing() -> None:
    world = World()
    world.answer(world.sent(), partition_index=0, high_watermark=7)
    assert (world.state(0).nothing_from, world.state(1).nothing_from) == (0, 0)
    assert world.fetcher.end_offset(world.state(0)) == 7


@pytest.mark.parametrize("data", [{"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}, {"preferred_read_replica": 2}])
def test_an_answer_that_sends_elsewhere_does_not_say_that_there_is_nothing(data: dict[str, Any]) -> None:
    world = World()
    world.answer(world.sent(), partition_index=0, **data)
    assert (world.state(0).nothing_from, world.state(1).nothing_from) == (-1, -1)


def test_nothing_is_asked_of_a_broker_until_it_is_connected() -> None:
    world = World()
    connections = world.fetcher.connecting.connections = OpenConnections()
    request = world.sent(0)
    assert isinstance(request, Connect)
    assert (request.node, request.channel) == (1, Channel.FETCH)
    assert world.fetcher.step(10) == []
    connections.open.add((1, Channel.FETCH))
    world.fetcher.answered(request, None, 0, 20)
    assert asked(world.sent(20)) == {0: 0, 1: 0}


def test_partitions_follow_their_leader_while_the_old_one_cannot_be_connected_to() -> None:
    world = World()
    world.fetcher.connecting.connections = OpenConnections((2, Channel.FETCH))
    assert isinstance(world.sent(0), Connect)
    world.metadata.learn_leader("t", 0, 2, 1)
    request = world.sent(100)
    assert (request.node, asked(request)) == (2, {0: 0})


def test_the_metadata_is_refreshed_while_a_broker_is_slow_to_connect() -> None:
    world = World()
    world.fetcher.connecting.connections = OpenConnections()
    world.sent(5_000)
    deadline_ms = world.fetcher.next_deadline_ms()
    assert deadline_ms is not None
    assert world.metadata.step(deadline_ms) == []
    assert world.fetcher.step(deadline_ms) == []
    assert len(world.metadata.step(deadline_ms)) == 1


def test_a_failed_connection_is_tried_again_after_the_backoff() -> None:
    world = World()
    world.fetcher.connecting.connections = OpenConnections()
    world.state(0).preferred_node = world.state(1).preferred_node = 2
    world.state(0).preferred_until_ms = world.state(1).preferred_until_ms = 1_000_000
    request = world.sent(0)
    assert request.node == 2
    world.fetcher.failed(request, NetworkError("refused"), 0)
    again = world.sent(1)
    assert (type(again), again.node) == (Connect, 1), "the leader takes the place of a replica that cannot be reached"
    world.fetcher.failed(again, NetworkError("refused"), 1)
    assert world.fetcher.step(2) == []
    deadline_ms = world.fetcher.next_deadline_ms()
    assert deadline_ms is not None
    assert isinstance(world.sent(deadline_ms), Connect)


def test_a_refused_login_is_an_error_of_every_partition() -> None:
    world = World()
    world.fetcher.connecting.connections = OpenConnections()
    error = SaslAuthenticationError("wrong password")
    world.fetcher.failed(world.sent(0), error, 0)
    assert world.fetcher.error is error
    assert world.fetcher.step(600_000) == []
    assert world.fetcher.next_deadline_ms() is None


@pytest.mark.parametrize(("count", "last_delta"), [(0, -1), (-5, -1), (2, -100)])
def test_a_batch_that_leads_nowhere_is_fetched_again_after_a_pause(
    count: int, last_delta: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A broken server would send it at full speed."""
    world = World()
    world.state(1).is_paused = True
    batch = make_batch(b"a", b"b")
    pack_into(">i", batch, 23, last_delta)
    pack_into(">i", batch, 57, count)
    pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    for round_number in range(3):
        now_ms = 1_000 * (1 + round_number)
        world.answer(world.sent(now_ms), now_ms, records=batch)
        fetched = world.fetcher.ready.popleft()
        assert fetched.take([], 10) == 0
        assert world.fetcher.step(now_ms + 999) == []
        assert world.fetcher.next_deadline_ms() == now_ms + 1_000
    (line,) = [each.getMessage() for each in caplog.records]
    assert "t-0 from offset 0" in line
    assert "its leader is broken" in line


# Errors of Fetch responses: which are retried, which ask another broker, which reset, and which are told.

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
