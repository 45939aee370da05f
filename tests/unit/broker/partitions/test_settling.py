"""Requests that wait for a partition are settled outside of appends, one round at a time."""

import asyncio

from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual

from ottla.broker.partitions.partition import ALL_IN_SYNC, Partition


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
