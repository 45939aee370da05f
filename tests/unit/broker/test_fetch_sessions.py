"""Fetch sessions: their rules one by one, eviction, and random sessions compared with full fetches."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual

from ottla.broker import fetch_sessions
from ottla.broker.fetch_sessions import (
    EPOCH_MAX,
    EVICTION_MS,
    FetchContext,
    FetchReader,
    FetchSessions,
    next_epoch,
)
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.sim.world import ManualClock, SeededRandomness
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic, PartitionData

Partition = tuple[str, int]


def request_of(
    *wanted: tuple[str, int, int], session_id: int = 0, epoch: int = 0, forget: tuple[Partition, ...] = ()
) -> FetchRequest:
    topics: dict[str, FetchTopic] = {}
    for topic, index, offset in wanted:
        asked = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1000)
        topics.setdefault(topic, FetchTopic(topic=topic)).partitions.append(asked)
    forgotten = [ForgottenTopic(topic=topic, partitions=[index]) for topic, index in forget]
    return FetchRequest(
        session_id=session_id, session_epoch=epoch, topics=list(topics.values()), forgotten_topics_data=forgotten
    )


class Broker:
    """Sessions without logs: every partition has what `say` gives it."""

    def __init__(self, slots: int = 10) -> None:
        self.clock = ManualClock()
        config: Any = SimpleNamespace(current=SimpleNamespace(max_incremental_fetch_session_cache_slots=slots))
        self.sessions = FetchSessions(self.clock, SeededRandomness(Random(7)), config)
        self.high_watermarks: dict[Partition, int] = {}
        self.errors: dict[Partition, int] = {}
        self.records: dict[Partition, bytes] = {}

    def ask(self, request: FetchRequest, version: int = 12, is_replica: bool = False) -> FetchResponse:
        begun = self.sessions.begin(request, version, FetchReader(1 if is_replica else -1))
        if isinstance(begun, FetchResponse):
            return begun
        return begun.finish(self.read(begun))

    def read(self, begun: FetchContext) -> list[Any]:
        return [(wanted, self._data((wanted.topic or "", wanted.index))) for wanted in begun.wanted.values()]

    def _data(self, name: Partition) -> PartitionData:
        error = self.errors.get(name, 0)
        high_watermark = -1 if error else self.high_watermarks.get(name, 0)
        return PartitionData(
            partition_index=name[1],
            error_code=error,
            high_watermark=high_watermark,
            log_start_offset=-1 if error else 0,
            records=self.records.get(name, b""),
        )

    def open(self, *wanted: tuple[str, int, int], is_replica: bool = False) -> int:
        response = self.ask(request_of(*wanted), is_replica=is_replica)
        assert response.error_code == 0
        return response.session_id


def told(response: FetchResponse) -> list[Partition]:
    assert response.error_code == 0
    return [(entry.topic, data.partition_index) for entry in response.responses for data in entry.partitions]


A, B, C = ("a", 0, 0), ("b", 0, 0), ("b", 1, 0)


# The rules


def test_error_is_sent_every_time_and_its_end_once() -> None:
    broker = Broker()
    session = broker.open(A)
    broker.errors["a", 0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    for epoch in (1, 2):
        assert told(broker.ask(request_of(session_id=session, epoch=epoch))) == [("a", 0)]
    broker.errors.clear()
    assert told(broker.ask(request_of(session_id=session, epoch=3))) == [("a", 0)]
    assert told(broker.ask(request_of(session_id=session, epoch=4))) == []


def test_partitions_that_returned_records_move_to_the_end() -> None:
    broker = Broker()
    session = broker.open(A, B, C)
    broker.records = {("a", 0): b"x", ("b", 0): b"y", ("b", 1): b"z"}
    broker.records.pop(("b", 0))
    assert told(broker.ask(request_of(session_id=session, epoch=1))) == [("a", 0), ("b", 1)]
    broker.records["b", 0] = b"y"
    assert told(broker.ask(request_of(session_id=session, epoch=2))) == [("b", 0), ("a", 0), ("b", 1)]


def test_session_with_topic_ids_refuses_names() -> None:
    broker = Broker()
    topic = FetchTopic(topic_id=Uuid(b"i" * 16), partitions=[FetchPartition(partition=0)])
    response = broker.ask(FetchRequest(session_epoch=0, topics=[topic]), version=13)
    request = request_of(session_id=response.session_id, epoch=1)
    assert broker.ask(request, version=12).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert broker.ask(request, version=18).error_code == 0


def test_request_overtaken_by_the_next_gets_an_epoch_error() -> None:
    broker = Broker()
    session = broker.open(A)
    waiting = broker.sessions.begin(request_of(session_id=session, epoch=1), 12, FetchReader())
    assert isinstance(waiting, FetchContext)
    assert broker.ask(request_of(session_id=session, epoch=2)).error_code == 0
    late = waiting.finish(broker.read(waiting))
    assert (late.error_code, late.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session)


def test_epoch_wraps_to_1() -> None:
    assert [next_epoch(epoch) for epoch in (0, 1, EPOCH_MAX - 1, EPOCH_MAX, -1)] == [1, 2, EPOCH_MAX, 1, -1]


# Eviction


def test_consumer_gets_no_session_if_all_slots_are_taken() -> None:
    broker = Broker(slots=2)
    first, second = broker.open(A), broker.open(A)
    assert broker.open(A, B) == 0, "both are too new to give way"
    broker.clock.advance(EVICTION_MS)
    for session in (first, second):
        assert broker.ask(request_of(session_id=session, epoch=1)).error_code == 0
    assert broker.open(A, B) == 0, "they were just used, and are not old enough yet"
    assert len(broker.sessions) == 2


def test_unused_session_is_evicted() -> None:
    broker = Broker(slots=2)
    idle, used = broker.open(A, B), broker.open(A)
    broker.clock.advance(EVICTION_MS + 1)
    assert broker.ask(request_of(session_id=used, epoch=1)).error_code == 0
    assert broker.open(A) > 0
    assert broker.ask(request_of(session_id=idle, epoch=1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert broker.ask(request_of(session_id=used, epoch=2)).error_code == 0


def test_old_session_is_evicted_for_one_with_as_many_partitions() -> None:
    broker = Broker(slots=2)
    small, large = broker.open(A, B), broker.open(A, B, C)
    broker.clock.advance(EVICTION_MS + 1)
    for session in (small, large):
        assert broker.ask(request_of(session_id=session, epoch=1)).error_code == 0
    assert broker.open(A) == 0
    assert broker.open(B, C) == 0, "as large, but its id is not yet known to be the larger one"
    assert broker.open(A, B, C) > 0
    assert broker.ask(request_of(session_id=small, epoch=2)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_replica_evicts_a_consumer_but_not_the_reverse() -> None:
    broker = Broker(slots=1)
    consumer = broker.open(A, B, C)
    replica = broker.open(A, is_replica=True)
    assert replica > 0
    assert broker.ask(request_of(session_id=consumer, epoch=1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    broker.clock.advance(EVICTION_MS + 1)
    assert broker.ask(request_of(session_id=replica, epoch=1), is_replica=True).error_code == 0
    assert broker.open(A, B, C) == 0
    assert broker.open(A, B, is_replica=True) > 0, "an old replica's session gives way to a larger one's"


# Random sessions

END = 99
"""Stands for the end of a partition, wherever that is."""

OPERATION = st.one_of(
    st.tuples(st.just("produce"), st.integers(0, 3), st.integers(1, 3)),
    st.tuples(st.just("delete"), st.integers(0, 3), st.sampled_from([1, 2, END])),
    st.tuples(st.just("want"), st.integers(0, 4), st.sampled_from([0, 1, END, END, -1])),
    st.tuples(st.just("forget"), st.integers(0, 4), st.just(0)),
    st.tuples(st.just("disorder"), st.integers(1, 3), st.just(0)),
)
FETCH = st.tuples(st.just("fetch"), st.sampled_from([1, 150, 400, 100_000]), st.integers(0, 1))
ROUNDS = st.lists(st.tuples(st.lists(OPERATION, max_size=4), FETCH), min_size=2, max_size=12)


class Conversation:
    """A client with a session, compared with full fetches of the same partitions in the session's order."""

    def __init__(self, held: HeldPartitions) -> None:
        self.held = held
        self.session_id = self.epoch = 0
        self.offsets: dict[int, int] = {}
        self.order: list[int] = []
        self.seen: dict[int, tuple[int, int, int]] = {}
        self.changed: set[int] = set()
        self.forgotten: set[int] = set()

    def want(self, index: int, offset: int) -> None:
        if index not in self.offsets and index not in self.forgotten:
            self.order.append(index)
        elif index not in self.offsets:
            return  # a client does not take back what it has not yet said
        self.offsets[index] = offset
        self.changed.add(index)

    def forget(self, index: int) -> None:
        if self.offsets.pop(index, None) is not None:
            self.order.remove(index)
            self.changed.discard(index)
            self.seen.pop(index, None)
            self.forgotten.add(index)

    def request(self, indexes: list[int], max_bytes: int, **more: Any) -> FetchRequest:
        parts = [FetchPartition(partition=i, fetch_offset=self.offsets[i], partition_max_bytes=300) for i in indexes]
        return FetchRequest(max_bytes=max_bytes, topics=[FetchTopic(topic="t", partitions=parts)] if parts else [], **more)

    def fetch(self, max_bytes: int, follow: bool) -> None:
        full: Any = self.held.fetch(self.request(self.order, max_bytes, session_epoch=-1))
        expected = {data.partition_index: said(data) for entry in full.responses for data in entry.partitions}
        named = [index for index in self.order if index in self.changed] if self.epoch else self.order
        request = self.request(named, max_bytes, session_id=self.session_id, session_epoch=self.epoch)
        request.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=sorted(self.forgotten))] if self.epoch else []
        response: Any = self.held.fetch(request)
        assert response.error_code == 0
        told = {data.partition_index: said(data) for entry in response.responses for data in entry.partitions}
        assert expected == {index: told.get(index, (*self.seen.get(index, ()), b"")) for index in self.order}
        for index, (*state, records) in told.items():
            assert records or state[0] or not self.epoch or tuple(state) != self.seen.get(index), "that was no news"
            self.seen[index] = tuple(state)  # type: ignore[assignment]  # three of them
            if records and self.epoch:
                self.order.remove(index)
                self.order.append(index)
            if follow and records:
                self.offsets[index] += 1
                self.changed.add(index)
        self.changed = {index for index in self.changed if follow and told.get(index, (0, 0, 0, b""))[3]}
        self.forgotten.clear()
        self.session_id, self.epoch = response.session_id, self.epoch + 1 if response.session_id else 0
        if not self.session_id:
            self.seen.clear()

    def disorder(self, by: int) -> None:
        if self.epoch:
            response: Any = self.held.fetch(self.request([], 1, session_id=self.session_id, session_epoch=self.epoch + by))
            assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def said(data: PartitionData) -> tuple[int, int, int, bytes]:
    records: Any = data.records
    return (
        data.error_code,
        data.high_watermark,
        data.log_start_offset,
        bytes(records if isinstance(records, bytes) else records.read()),
    )


@given(ROUNDS)
@settings(deadline=None, max_examples=examples(200))
def test_session_sends_what_full_fetches_would(rounds: list[tuple[list[tuple[str, int, int]], tuple[str, int, int]]]) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(paths=("/a",))
        await held.make_topic("t", 4)
        conversation = Conversation(held)
        for index in range(3):
            held.produced("t", index, make_batch(b"x" * 50))
            conversation.want(index, index % 2)
        for operations, (_, max_bytes, follow) in rounds:
            for what, index, number in operations:
                end = held.partition("t", min(index, 3)).log.high_watermark
                if what == "produce":
                    held.produced("t", index, make_batch(*[b"x" * 50] * number))
                elif what == "delete":
                    held.partition("t", index).log.delete_records(min(number, end))
                elif what == "want":
                    conversation.want(index, end if number == END else number)
                elif what == "forget":
                    conversation.forget(index)
                else:
                    conversation.disorder(index)
            conversation.fetch(max_bytes, bool(follow))

    virtual(scenario())


def test_sessions_remember_a_bounded_number_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_MAX", 10)
    broker = Broker()
    first = broker.open(*[("a", index, 0) for index in range(6)])
    second = broker.open(*[("b", index, 0) for index in range(4)])
    assert first
    assert second
    assert broker.ask(request_of(("c", 0, 0))).session_id == 0, "there is no room, and it is served without a session"
    grown = broker.ask(request_of(("b", 7, 0), session_id=second, epoch=1))
    assert grown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(broker.sessions) == 1
    third = broker.open(*[("c", index, 0) for index in range(4)])
    shrunk = broker.ask(request_of(session_id=first, epoch=1, forget=(("a", 0), ("a", 1))))
    assert shrunk.error_code == 0
    assert broker.ask(request_of(("c", 8, 0), ("c", 9, 0), session_id=third, epoch=1)).error_code == 0
    broker.clock.advance(EVICTION_MS + 1)
    assert broker.open(*[("d", index, 0) for index in range(10)]), "unused sessions were evicted"
    assert len(broker.sessions) == 1
