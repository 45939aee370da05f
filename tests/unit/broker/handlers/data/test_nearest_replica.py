"""Consumers are sent to a replica in their rack, and followers answer them."""

import asyncio

from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual, waiting
from tests.support.peers.fetching import bytes_of, fetch_of, found, part, values

from ottla.broker.handlers.data.fetch import RACK_AWARE
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.metadata_records import RegisterBrokerRecord


async def racks() -> HeldPartitions:
    held = await HeldPartitions.open({"replica.selector.class": RACK_AWARE})
    for broker, rack in ((1, "a"), (2, "b"), (3, "b")):
        await held.commit(RegisterBrokerRecord(broker_id=broker, broker_epoch=7, rack=rack, fenced=False))
    await held.make_topic("t", replicas=(1, 2, 3))
    for value in (b"a", b"b"):
        held.produce("t", 0, make_batch(value))
    return held


def test_consumer_is_sent_to_the_furthest_replica_in_its_rack_that_has_the_offset() -> None:
    async def scenario() -> None:
        held = await racks()
        partition = held.partition("t")

        def nearest(offset: int, rack: str) -> int:
            request = fetch_of("t", part(offset=offset), rack_id=rack, max_wait_ms=0)
            (data,) = found(held.fetch(request))
            assert data.preferred_read_replica < 0 or data.records == b""
            return data.preferred_read_replica

        assert nearest(0, "b") == -1, "no replica has fetched"
        partition.follower_fetches(2, 1, 0, 7)
        partition.follower_fetches(3, 2, 0, 7)
        assert nearest(0, "b") == 3
        assert nearest(0, "a") == nearest(0, "c") == nearest(0, "") == -1
        partition.follower_fetches(3, 0, 0, 7)
        assert nearest(1, "b") == 2
        assert nearest(2, "b") == -1, "neither has it"

    virtual(scenario())


def test_consumer_is_not_sent_to_a_replica_that_is_not_in_sync() -> None:
    async def scenario() -> None:
        held = await racks()
        partition = held.partition("t")
        for replica in (2, 3):
            partition.follower_fetches(replica, 1, 0, 7)
        await held.change("t", 0, isr=[1, 2])
        partition.follower_fetches(3, 2, 0, 7)
        request = fetch_of("t", part(offset=1), rack_id="b", max_wait_ms=0)
        assert [data.preferred_read_replica for data in found(held.fetch(request))] == [2]
        await held.change("t", 0, isr=[1])
        assert [data.preferred_read_replica for data in found(held.fetch(request))] == [-1]

    virtual(scenario())


def test_follower_answers_consumers_up_to_its_high_watermark() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        held.produce("t", 0, make_batch(b"a"), acks=1)
        held.produce("t", 0, make_batch(b"b"), acks=1)
        await held.change("t", 0, leader=2)
        partition = held.partition("t")
        partition.follow_offsets(1, 0)
        handled = held.fetch(fetch_of("t", part(0, current_leader_epoch=1)))
        assert values(handled) == [[b"a"]]
        (data,) = found(held.fetch(fetch_of("t", part(0)), version=10))
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "older consumers read from leaders only"
        (data,) = found(held.fetch(fetch_of("t", part(0, current_leader_epoch=0))))
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH

    virtual(scenario())


def test_consumer_that_waits_at_a_follower_is_woken_by_its_high_watermark() -> None:
    async def scenario() -> None:
        held, leader = await HeldPartitions.open(), await HeldPartitions.open()
        for each in (held, leader):
            await each.make_topic("t", replicas=(1, 2))
        leader.produce("t", 0, make_batch(b"a"), acks=1)
        await held.change("t", 0, leader=2)
        reply = waiting(held.fetch(fetch_of("t", part(0), max_wait_ms=10_000)))
        (data,) = found(leader.fetch(fetch_of("t", part(0), replica_id=2)))
        partition = held.partition("t")
        partition.append_as_follower(bytes_of(data), 1)
        await asyncio.sleep(0.1)
        assert not reply.done()
        partition.follow_offsets(1, 0)
        assert values(await reply) == [[b"a"]]
        assert held.clock.monotonic_s() < 1

    virtual(scenario())
