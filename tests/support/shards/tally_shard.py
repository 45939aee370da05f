"""A minimal coordinator shard that keeps a number per name, for tests of the hosts of shards."""

from collections.abc import Iterable
from typing import Any

from tests.support.nodes.held_partitions import HeldPartitions

from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.coordinators.runtime import CoordinatorRuntime
from ottla.coordinator.contract import (
    Answer,
    CoordinatorRecord,
    Effects,
    FastReplay,
    Instant,
    NoFastReplay,
    Producer,
    Reply,
    put,
)
from ottla.coordinator.timers import Timers
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC
from ottla.wire.log_records import InternalLog
from ottla.wire.messages.offset_records import OffsetCommitKey, OffsetCommitValue


class TallyShard:
    """Numbers by name; those set within a transaction apply once it is committed."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.offsets: dict[str, int] = {}
        self.pending: dict[int, dict[str, int]] = {}
        self.timers = Timers()
        self.parked: list[Reply] = []
        self.is_loaded = False

    def set(self, name: str, number: int, reply: Reply, now: Instant) -> Effects:
        if number < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "numbers are not negative")
        return Effects.answer(reply, f"{name}={number}", [record_of(name, number)])

    def set_in_transaction(self, name: str, number: int, producer: Producer, reply: Reply, now: Instant) -> Effects:
        effects = Effects.answer(reply, f"{name}={number}", [record_of(name, number)])
        effects.producer = producer
        return effects

    def park(self, reply: Reply, now: Instant) -> Effects:
        self.parked.append(reply)
        return Effects()

    @property
    def next_deadline_ms(self) -> int | None:
        return self.timers.next_deadline_ms

    def replay(self, record: CoordinatorRecord, offset: int, producer: Producer | None) -> None:
        key: Any = record.key
        self.offsets[key.group] = offset
        numbers = self.numbers if producer is None else self.pending.setdefault(producer.id, {})
        if record.value is None:
            numbers.pop(key.group, None)
        else:
            numbers[key.group] = record.value.message.offset

    def replay_end(self, producer: Producer, is_commit: bool) -> None:
        numbers = self.pending.pop(producer.id, {})
        if is_commit:
            self.numbers.update(numbers)

    def fast_replay(self) -> FastReplay:
        return NoFastReplay()

    def refuse_waiting(self, failure: KafkaError) -> Iterable[Answer]:
        return [Answer(reply, failure) for reply in self.parked]

    def loaded(self, now: Instant) -> Effects:
        self.is_loaded = True
        return Effects()

    def expire(self, now: Instant) -> Effects:
        action = self.timers.pop_due(now)
        return Effects() if action is None else action(now)


def record_of(name: str, number: int, metadata: str = "") -> CoordinatorRecord:
    return put(OffsetCommitKey(group=name), OffsetCommitValue(offset=number, metadata=metadata), 4)


def tally_runtime(held: HeldPartitions, commit_timeout_ms: int = 5000) -> CoordinatorRuntime[TallyShard]:
    def make(partition: Partition) -> TallyShard:
        return TallyShard()

    return CoordinatorRuntime(
        OFFSETS_TOPIC, InternalLog.GROUPS, held.partitions, held.metadata, held.clock, commit_timeout_ms, make
    )
