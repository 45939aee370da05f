"""One partition: its refusals, and what a new leader epoch resets."""

import asyncio
import re
from pathlib import Path

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual

from ottla.broker.partitions import partition
from ottla.broker.partitions.in_sync import Change, InSyncReplicas
from ottla.broker.partitions.partition import ALL_IN_SYNC, Partition, PartitionOwner
from ottla.broker.partitions.partitions import Partitions
from ottla.errors import BrokenInvariant, CorruptFile, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.read import Isolation
from ottla.metadata.image.image import ResourceType
from ottla.wire.messages.metadata_records import ConfigRecord


def test_new_leader_epoch_forgets_the_followers_offsets() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        partition = held.partition("t")
        held.produce("t", 0, make_batch(b"a"))
        partition.follower_fetches(2, 1, 0, -1)
        await held.change("t", 0, isr=[1, 2])
        assert partition.follower_ends == {2: 1}
        await held.change("t", 0, leader=1)
        assert partition.follower_ends == {}
        assert partition.log.high_watermark == 1, "what was committed stays so"

    virtual(scenario())


def test_unflushed_records_of_a_killed_process_are_flushed_first() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        held.produce("t", 0, make_batch(b"a"))
        flush_each = ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name="flush.messages", value="1")
        await held.restart(crash=True, before=[flush_each])
        log = held.partition("t").log
        assert (log.log_end_offset, log.recovery_point, log.high_watermark) == (1, 1, 1)

    virtual(scenario())


def test_closed_log_refuses_without_growing_its_traceback() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        partition = held.partition("t")
        await held.directories.close()
        for _ in range(3):
            assert held.produced("t", 0, make_batch(b"a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            with pytest.raises(KafkaError, match="is not available now"):
                partition.read(0, 100, Isolation.LOG_END)
        assert partition.log.write_barrier is not None
        assert partition.log.write_barrier.__traceback__ is None

    virtual(scenario())


def test_damaged_file_is_refused_and_a_broken_invariant_raised() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        partition = held.partition("t")
        assert partition.refused_by(CorruptFile("f", 1, "damaged", "Mend it")).code == ErrorCode.CORRUPT_MESSAGE
        with pytest.raises(BrokenInvariant):
            partition.refused_by(BrokenInvariant("it cannot be"))

    virtual(scenario())


def test_refusal_and_repr_name_the_leader() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2), leader=2)
        assert str(held.partition("t").refusal()) == ("t-0 is led by node 2, not by node 1: ask for new metadata and go there")
        assert "led by 2" in repr(held.partition("t"))

    virtual(scenario())


def test_the_table_has_all_that_partitions_call() -> None:
    folder = Path(partition.__file__).parent
    sources = "".join((folder / name).read_text(encoding="utf-8") for name in ("kernel.py", "partition.py"))
    called = set(re.findall(r"_owner\.(\w+)", sources))
    agreed = {name for name in vars(PartitionOwner) if not name.startswith("_")}
    assert called == agreed
    assert all(hasattr(Partitions, name) for name in agreed)


class Waiter:
    """A parked request that is answered at the second call, and whose first answer makes the partition settle again."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        """The high watermark at each call."""
        self.is_settling = False

    def settle(self, partition: Partition) -> bool:
        assert not self.is_settling, "called from within its own call"
        self.is_settling = True
        self.seen.append(partition.log.high_watermark)
        if len(self.seen) == 1:
            partition.settle_acks()
        self.is_settling = False
        return len(self.seen) == 2


def test_append_settles_on_the_next_turn() -> None:
    """An answer makes its connection handle the next request, and that could append in the middle of this one."""

    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        partition, waiter = held.partition("t"), Waiter()
        partition.ack_waits[waiter] = None
        partition.append(make_batch(b"a"), ALL_IN_SYNC)
        partition.append(make_batch(b"b"), ALL_IN_SYNC)
        assert (partition.log.high_watermark, waiter.seen) == (2, [])
        await asyncio.sleep(0)
        assert waiter.seen == [2, 2]
        assert not partition.ack_waits

    virtual(scenario())


def test_settling_is_not_re_entered() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        partition, waiters = held.partition("t"), [Waiter(), Waiter()]
        partition.ack_waits.update(dict.fromkeys(waiters))
        partition.settle_acks()
        assert [len(each.seen) for each in waiters] == [2, 2], "what was asked for meanwhile is done afterwards"
        assert not partition.ack_waits

    virtual(scenario())


LAG_S = 10.0


def eligible(replica: int, broker_epoch: int) -> bool:
    return True


def fenced(replica: int, broker_epoch: int) -> bool:
    return False


def of(isr: tuple[int, ...] = (1, 2, 3), start_offset: int = 0, now_s: float = 0.0) -> InSyncReplicas:
    return InSyncReplicas(1, (1, 2, 3), isr, start_offset, {}, now_s)


def awaited(replicas: InSyncReplicas, leader_end: int = 100, now_s: float = 0.0) -> set[int]:
    return set(replicas.awaited(leader_end, LAG_S, eligible, now_s))


def test_high_watermark_waits_for_the_isr_even_before_its_first_fetch() -> None:
    assert awaited(of(), now_s=1000) == {2, 3}


def test_pending_addition_counts_as_in_sync() -> None:
    replicas = of(isr=(1, 2))
    assert awaited(replicas, now_s=1000) == {2}
    replicas.pending = Change((1, 2, 3), 0, 0, (7, 7, 7))
    assert awaited(replicas, now_s=1000) == {2, 3}


def test_pending_removal_still_counts_as_in_sync() -> None:
    replicas = of()
    replicas.pending = Change((1, 2), 0, 0, (7, 7))
    assert replicas.maximal == {1, 2, 3}
    assert awaited(replicas, now_s=1000) == {2, 3}


def test_high_watermark_waits_for_a_caught_up_replica_that_may_join() -> None:
    replicas = of(isr=(1, 2))
    replicas.fetched(3, 100, 0, 7, 100, now_s=50)
    assert awaited(replicas, leader_end=101, now_s=51) == {2, 3}
    assert set(replicas.awaited(101, LAG_S, fenced, 51)) == {2}
    assert awaited(replicas, leader_end=101, now_s=61) == {2}, "it has not caught up for too long"


def test_replica_joins_at_the_high_watermark_and_past_the_start_of_the_epoch() -> None:
    replicas = of(isr=(1, 2), start_offset=50)
    assert replicas.growth(3, 40, eligible) is None, "it has not fetched"
    replicas.fetched(3, 49, 0, 7, 100, 0)
    assert replicas.growth(3, 40, eligible) is None, "before the start of the leader's epoch"
    replicas.fetched(3, 50, 0, 7, 100, 0)
    assert replicas.growth(3, 51, eligible) is None, "below the high watermark"
    assert replicas.growth(3, 50, fenced) is None
    assert replicas.growth(3, 50, eligible) == (1, 2, 3)
    replicas.pending = Change((1,), 0, 0, (7,))
    assert replicas.growth(3, 50, eligible) is None, "one change at a time"


def test_lagging_replicas_leave_the_isr() -> None:
    replicas = of()
    replicas.fetched(2, 100, 0, 7, 100, now_s=5)
    assert replicas.shrinkage(100, LAG_S, now_s=10) is None
    assert replicas.shrinkage(101, LAG_S, now_s=15) == (1, 2), "node 3 was last caught up when this epoch began"
    assert replicas.shrinkage(100, LAG_S, now_s=1000) == (1, 2), "node 2 has everything"
    replicas.pending = Change((1, 2), 0, 0, (7, 7))
    assert replicas.shrinkage(100, LAG_S, now_s=1000) is None, "one change at a time"


def test_replica_that_keeps_pace_without_ever_reaching_the_end_stays() -> None:
    replicas = of()
    for second in range(1, 100):
        replicas.fetched(2, 10 * (second - 1), 0, 7, 10 * second, now_s=second)
        replicas.fetched(3, 0, 0, 7, 10 * second, now_s=second)
    assert replicas.shrinkage(1000, LAG_S, now_s=100) == (1, 2)


def test_replica_that_is_several_answers_behind_and_keeps_pace_stays() -> None:
    replicas = of(isr=(1, 2))
    for second in range(1, 101):  # each answer brings one batch, and the leader is always four ahead
        replicas.fetched(2, second * 10, 0, 7, second * 10 + 40, now_s=second)
        assert replicas.shrinkage(second * 10 + 40, LAG_S, second) is None
    replicas.fetched(2, 1005, 0, 7, 2000, now_s=101)
    assert replicas.shrinkage(2000, LAG_S, 120) == (1,), "now it falls behind"


def test_fetch_of_an_earlier_process_is_stale() -> None:
    replicas = of()
    assert not replicas.is_stale(2, 7)
    replicas.fetched(2, 0, 0, 7, 0, 0)
    assert replicas.is_stale(2, 6)
    assert not replicas.is_stale(2, -1), "old versions send none"
    assert replicas.broker_epoch(2) == 7
    assert replicas.broker_epoch(3) == replicas.broker_epoch(9) == -1


def test_newer_metadata_answers_the_pending_change_and_drops_replicas_that_are_gone() -> None:
    replicas = of(isr=(1, 2))
    replicas.fetched(2, 5, 0, 7, 5, 0)
    replicas.pending = Change((1, 2, 3), 0, 0, (7, 7, 7))
    replicas.adopt((1, 3, 4), (1, 3), now_s=20)
    assert replicas.pending is None
    assert sorted(replicas.remote) == [3, 4]
    assert replicas.ends == {}
    assert awaited(replicas, now_s=20) == {3}
