"""DeleteRecords waits until the other replicas have the new log start offset."""

import asyncio

from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual

from ottla.broker.handlers.data.delete_records import reach
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.metadata_records import RegisterBrokerRecord


async def replicated() -> HeldPartitions:
    held = await HeldPartitions.open()
    await held.commit(RegisterBrokerRecord(broker_id=2, broker_epoch=7, fenced=False))
    await held.make_topic("t", replicas=(1, 2))
    for value in (b"a", b"b", b"c"):
        held.produce("t", 0, make_batch(value))
    held.partition("t").follower_fetches(2, 3, 0, 7)
    return held


def test_wait_ends_when_every_replica_begins_there() -> None:
    async def scenario() -> None:
        held = await replicated()
        partition = held.partition("t")
        partition.log.delete_records(2)
        waiting = asyncio.ensure_future(reach(partition, 2, held.clock.monotonic_s() + 10))
        await asyncio.sleep(1)
        assert (waiting.done(), partition.low_watermark) == (False, 0)
        partition.follower_fetches(2, 3, 2, 7)
        assert await waiting == ErrorCode.NONE
        assert not partition.ack_waits

    virtual(scenario())


def test_wait_ends_with_its_time_or_the_leadership() -> None:
    async def scenario() -> None:
        held = await replicated()
        partition = held.partition("t")
        partition.log.delete_records(2)
        assert await reach(partition, 2, held.clock.monotonic_s() + 0.5) == ErrorCode.REQUEST_TIMED_OUT
        waiting = asyncio.ensure_future(reach(partition, 2, held.clock.monotonic_s() + 10))
        await asyncio.sleep(0.1)
        await held.change("t", 0, leader=2)
        assert await waiting == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert not partition.ack_waits

    virtual(scenario())


def test_replica_that_is_fenced_is_not_waited_for() -> None:
    async def scenario() -> None:
        held = await replicated()
        partition = held.partition("t")
        partition.log.delete_records(2)
        await held.commit(RegisterBrokerRecord(broker_id=2, broker_epoch=8, fenced=True))
        assert await reach(partition, 2, held.clock.monotonic_s() + 10) == ErrorCode.NONE

    virtual(scenario())
