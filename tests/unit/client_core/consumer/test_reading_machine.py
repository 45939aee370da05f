"""Positions, fetches and reading together, under random answers, errors, disconnects, leader changes and seeks.

Whatever happens, a partition's records come in order, none twice, none left out, from where the last seek went.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.cases.examples import examples
from tests.support.machines.consumer_cluster import TOPIC, Driver, FakeCluster, known_metadata, no_chance, place, settings

from ottla.client.consumer.reader import RecordReader
from ottla.client_core.consumer.fetcher import Fetcher, FetchErrors
from ottla.client_core.consumer.offset_lister import OffsetLister
from ottla.client_core.consumer.positions import Positions
from ottla.client_core.consumer.settings import EARLIEST
from ottla.client_core.consumer.subscription import Position, Subscription
from ottla.errors.codes import ErrorCode
from ottla.records.compression import Codec

PARTITIONS = 2
partitions = st.integers(0, PARTITIONS - 1)
ERRORS = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.KAFKA_STORAGE_ERROR,
]


class Reading(RuleBasedStateMachine):
    """A consumer of two partitions and the cluster that it reads."""

    @initialize(is_committed_only=st.booleans(), bytes_max=st.sampled_from([1, 200, 1_000_000]))
    def begin(self, is_committed_only: bool, bytes_max: int) -> None:
        level = "read_committed" if is_committed_only else "read_uncommitted"
        chosen: Any = settings(isolation_level=level, max_partition_fetch_bytes=bytes_max)
        self.cluster = FakeCluster(PARTITIONS, is_committed_only=is_committed_only)
        metadata = known_metadata(self.cluster)
        self.subscription = Subscription()
        lister = OffsetLister(metadata, chosen, no_chance)
        positions = Positions(self.subscription, metadata, chosen, lister, EARLIEST, lambda: 0)
        self.fetcher = Fetcher(self.subscription, metadata, chosen, FetchErrors(metadata, chosen, EARLIEST), no_chance)
        self.driver = Driver(self.cluster, positions, lister, self.fetcher, metadata)
        self.reader = RecordReader(self.subscription, self.fetcher, lambda: None, None, None)
        self.subscription.assign([place(each) for each in range(PARTITIONS)])
        self.expected = [0] * PARTITIONS
        """The lowest offset that may come next."""
        self.count = 0
        for partition in range(PARTITIONS):
            self.append(partition, 4, Codec.NONE)
            self.append(partition, 3, Codec.GZIP)
        self.serve(3)

    # The cluster

    @rule(partition=partitions, count=st.integers(1, 4), codec=st.sampled_from([Codec.NONE, Codec.GZIP]))
    def append(self, partition: int, count: int, codec: Codec) -> None:
        values = [b"%d" % (self.count + index) for index in range(count)]
        self.count += count
        self.cluster.partitions[partition].append(values, codec)

    @rule(partition=partitions, count=st.integers(1, 3), is_commit=st.booleans(), producer_id=st.integers(1, 2))
    def append_transaction(self, partition: int, count: int, is_commit: bool, producer_id: int) -> None:
        is_seen = is_commit or not self.cluster.is_committed_only
        values = [b"%d" % (self.count + index) for index in range(count)]
        self.count += count
        log = self.cluster.partitions[partition]
        first = log.end
        log.append_transaction(values, producer_id, is_commit=is_commit)
        if is_seen:
            log.visible.update({first + index: value for index, value in enumerate(values)})

    @rule(partition=partitions)
    def move_leader(self, partition: int) -> None:
        log = self.cluster.partitions[partition]
        log.leader = 3 - log.leader
        log.epoch += 1

    @rule(partition=partitions, code=st.sampled_from(ERRORS))
    def refuse_next_fetch(self, partition: int, code: int) -> None:
        self.cluster.fetch_error[partition] = code

    @rule()
    def forget_sessions(self) -> None:
        self.cluster.sessions.clear()

    # The network

    @rule(elapsed_ms=st.sampled_from([0, 50, 150, 2_000]))
    def step(self, elapsed_ms: int) -> None:
        self.driver.now_ms += elapsed_ms
        self.driver.step()

    @rule(rounds=st.integers(1, 4))
    def serve(self, rounds: int) -> None:
        """Some rounds in which nothing fails, and which may end with requests on their way."""
        for _ in range(rounds):
            self.driver.now_ms += 150
            self.driver.step()
            for _ in range(len(self.driver.in_flight)):
                self.driver.deliver()
        self.driver.step()

    @precondition(lambda self: self.driver.in_flight)
    @rule(data=st.data())
    def deliver(self, data: Any) -> None:
        self.driver.deliver(data.draw(st.integers(0, len(self.driver.in_flight) - 1)))

    @precondition(lambda self: self.driver.in_flight)
    @rule(data=st.data(), is_seen=st.booleans())
    def lose(self, data: Any, is_seen: bool) -> None:
        self.driver.lose(data.draw(st.integers(0, len(self.driver.in_flight) - 1)), is_seen=is_seen)

    # The caller

    @rule(limit=st.integers(1, 7))
    def take(self, limit: int) -> None:
        records = self.reader.take(limit)
        assert len(records) <= limit
        self.check(records)

    @rule(limit=st.integers(1, 7))
    def take_batches(self, limit: int) -> None:
        batches = self.reader.take_batches(limit)
        assert sum(map(len, batches.values())) <= limit
        for (_, partition), records in batches.items():
            assert {record.partition for record in records} == {partition}
            self.check(records)

    def check(self, records: list[Any]) -> None:
        for record in records:
            log = self.cluster.partitions[record.partition]
            due = min(offset for offset in log.visible if offset >= self.expected[record.partition])
            assert (record.topic, record.offset, record.value) == (TOPIC, due, log.visible[due])
            self.expected[record.partition] = record.offset + 1

    @rule(partition=partitions, is_fetched=st.booleans(), data=st.data())
    def seek(self, partition: int, is_fetched: bool, data: Any) -> None:
        if is_fetched:  # an answer with records is on its way, and comes after the seek
            self.append(partition, 2, Codec.NONE)
            self.driver.step()
        offset = data.draw(st.integers(0, self.cluster.partitions[partition].end))
        self.subscription.state(place(partition)).jump(Position(offset))
        self.expected[partition] = offset

    @rule(partition=partitions, is_paused=st.booleans())
    def pause(self, partition: int, is_paused: bool) -> None:
        self.subscription.state(place(partition)).is_paused = is_paused

    @invariant()
    def positions_are_right(self) -> None:
        for each, state in getattr(self, "subscription", Subscription()).partitions.items():
            assert state.error is None
            if state.position is not None:
                log = self.cluster.partitions[each.partition]
                expected = self.expected[each.partition]
                # Nothing that the caller may see lies between what was handed out and the position.
                assert state.position.offset >= expected
                assert not [offset for offset in log.visible if expected <= offset < state.position.offset]
                assert state.buffered_bytes >= 0

    def teardown(self) -> None:
        """Once nothing fails any more, everything that is left comes."""
        if not hasattr(self, "subscription"):
            return
        self.cluster.fetch_error.clear()
        for state in self.subscription.partitions.values():
            state.is_paused = False
        for _ in range(200):
            self.driver.step()
            while self.driver.in_flight:
                self.driver.deliver()
            self.driver.now_ms += 500
            self.check(self.reader.take(1_000))
            if not self.missing():
                return
        raise AssertionError(f"records never came: {self.missing()}")

    def missing(self) -> list[tuple[int, int]]:
        """(partition, offset) of what the caller did not get yet."""
        logs = enumerate(self.cluster.partitions)
        return [(number, offset) for number, log in logs for offset in log.visible if offset >= self.expected[number]]


TestReading = Reading.TestCase
TestReading.settings = hypothesis_settings(max_examples=examples(200), stateful_step_count=50, deadline=None)
