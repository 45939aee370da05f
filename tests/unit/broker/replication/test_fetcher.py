"""A replica fetcher: what it makes of its leader's answers."""

import asyncio
import errno
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import only_answer, virtual
from tests.support.nodes.replicas import TOPIC, LoopbackLink, Replicas, log_of, values

from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.context import Pending, future_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.log import append
from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation
from ottla.records.batch import iterate_batches
from ottla.sim.disk import Fault
from ottla.wire.messages.fetch import FetchResponse


def test_follower_takes_over_deleted_records_and_starts_where_its_leader_does() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(7)) as world:
            for number in range(5):
                await world.produce(b"%d" % number)
            await world.settle()
            late = world.nodes[3]
            late.is_cut_off = True
            world.change(isr=[1, 2])
            for number in range(5, 9):
                await world.produce(b"%d" % number)
            leader = world.nodes[1].partition
            leader.log.delete_records(7)
            late.is_cut_off = False
            await world.settle()
            assert [node.partition.log.log_start_offset for node in world.nodes.values()] == [7, 7, 7]

    virtual(scenario())


def test_failed_directory_does_not_stop_a_follower_whose_leader_has_deleted_records() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(1)) as world:
            assert await world.produce(b"a") == ErrorCode.NONE
            await asyncio.sleep(1)
            follower, broken = world.nodes[2].held, list[BaseException]()
            follower.partitions.on_broken = broken.append
            log = follower.partition(TOPIC).log
            # As after a failed flush: the directory's partitions go offline when all logs were looked at.
            follower.directories.note_loss(log.fail(OSError(errno.EIO, "Input/output error")), log)
            leader = world.nodes[1].partition
            leader.log.delete_records(1)
            leader.look_for_followers()
            await asyncio.sleep(1)
            assert broken == []

    virtual(scenario())


def test_follower_whose_log_ends_before_its_leaders_begins_starts_again_there() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(8)) as world:
            for number in range(3):
                await world.produce(b"%d" % number)
            await world.settle()
            late = world.nodes[3]
            await late.stop()
            world.fence(late)
            for number in range(3, 9):
                await world.produce(b"%d" % number)
            for leader in (1, 2):
                log = world.nodes[leader].partition.log
                log.roll()
                log.delete_records(min(8, log.high_watermark))
            await late.restart()
            await world.settle()
            log = late.partition.log
            assert (log.log_start_offset, log.log_end_offset) == (8, 9)

    virtual(scenario())


def test_new_follower_begins_before_a_log_start_within_a_batch() -> None:
    """The leader's log starts at offset 5, in a batch from 3 to 8: the follower takes the batch whole, and starts at 5 too."""

    async def scenario() -> None:
        async with Replicas.open(Random(12), configs={"flush.messages": 1}) as world:
            await world.produce(b"a")
            await world.settle()
            late = world.nodes[3]
            await late.stop()
            world.fence(late)
            for value in (b"b", b"c"):
                await world.produce(value)
            leader = world.nodes[1]
            batch = make_batch(*(b"%d" % number for number in range(6)))
            handled = leader.held.produce(TOPIC, 0, batch, timeout_ms=1000)
            assert isinstance(handled, Pending)
            assert only_answer(await future_of(handled)).error_code == ErrorCode.NONE
            await world.settle()
            for node in (1, 2):
                world.nodes[node].partition.log.delete_records(5)
            await late.restart()
            await world.settle()
            log = late.partition.log
            assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (5, 9, 9)
            assert log.segments.first.base_offset == 3
            assert log_of(late.partition) == log_of(leader.partition)
            assert await world.produce(b"after") == ErrorCode.NONE

    virtual(scenario())


def test_records_that_must_be_flushed_are_on_disk_before_they_are_acknowledged() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(9), configs={"flush.messages": 1}) as world:
            for number in range(5):
                assert await world.produce(b"%d" % number) == ErrorCode.NONE
                assert [node.partition.log.recovery_point for node in world.nodes.values()] == [number + 1] * 3

    virtual(scenario())


def test_follower_that_flushes_asks_for_nothing_twice_and_keeps_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request for other partitions must not repeat the offset before a flush: the replica would seem to lag."""
    sent: list[int] = []
    request = LoopbackLink.request

    async def counted(link: LoopbackLink, message: Any, timeout_ms: int) -> Any:
        response = await request(link, message, timeout_ms)
        if link.caller.id == 3 and isinstance(response, FetchResponse):
            answers = [data for topic in response.responses for data in topic.partitions]
            sent.extend(view.base_offset for data in answers for view in iterate_batches(data.records or b""))
        return response

    monkeypatch.setattr(LoopbackLink, "request", counted)

    async def scenario() -> None:
        async with Replicas.open(Random(13), configs={"flush.messages": 1}) as world:
            world.add_partition(1)
            await world.settle()
            for number in range(20):
                assert await world.produce(b"%d" % number) == ErrorCode.NONE
            await world.settle()
            assert sent == list(range(20))

    virtual(scenario())


def test_request_of_a_follower_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[int, float]] = []
    follower_fetches = Partition.follower_fetches

    def count(partition: Partition, replica: int, *what: int) -> None:
        counted.append((replica, asyncio.get_running_loop().time()))
        follower_fetches(partition, replica, *what)

    monkeypatch.setattr(Partition, "follower_fetches", count)

    async def scenario() -> None:
        async with Replicas.open(Random(14)) as world:
            for number in range(10):
                await asyncio.gather(*(world.produce(b"%d" % number) for _ in range(3)))
            await world.settle()
        assert len(counted) > 20
        assert len(counted) == len(set(counted))

    virtual(scenario())


def test_fetcher_comes_back_after_its_leader_was_restarted() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(10)) as world:
            await world.produce(b"a")
            leader = world.nodes[1]
            await leader.stop()
            world.fence(leader)
            await leader.restart()
            await world.settle()
            world.change(leader=1)
            await world.settle()
            assert await world.produce(b"b") == ErrorCode.NONE
            assert values(world.nodes[3].partition, Isolation.LOG_END) == [b"a", b"b"]

    virtual(scenario())


def test_request_to_a_process_that_lost_its_power_ends_when_the_next_is_registered() -> None:
    """No packet says that it is gone: without the metadata the request would wait for replica.socket.timeout.ms."""

    async def scenario() -> None:
        async with Replicas.open(Random(11)) as world:
            await world.produce(b"a")
            leader = world.nodes[1]
            await leader.stop(silently=True)  # and it is back before its session ends
            await leader.restart()
            await world.settle()
            assert await world.produce(b"b") == ErrorCode.NONE
            assert values(world.nodes[3].partition, Isolation.LOG_END) == [b"a", b"b"]

    virtual(scenario())


def test_follower_that_appended_a_part_goes_on_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log ends within the response that failed: fetched again from the old offset, it could never be appended."""

    def out_of_descriptors(*_: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no segment can be begun")

    async def scenario() -> None:
        async with Replicas.open(Random(11)) as world:
            late = world.nodes[3]
            late.is_cut_off = True
            world.change(isr=[1, 2])
            sent = [b"small", b"large" * 1000]
            for value in sent:
                assert await world.produce(value, timeout_ms=30_000) == ErrorCode.NONE
            log = late.partition.log
            config, log.config = log.config, replace(log.config, segment_bytes=2000)
            monkeypatch.setattr(append, "_next_segment", out_of_descriptors)
            late.is_cut_off = False
            async with asyncio.timeout(60):
                while log.log_end_offset == 0:
                    await asyncio.sleep(0.01)
            assert log.log_end_offset == 1, "the second batch is refused: it needs another segment"
            monkeypatch.undo()
            log.config = config
            await world.settle()
            assert values(late.partition, Isolation.LOG_END) == sent

    virtual(scenario())


VALUE = b"v" * 10_000
RATE = 200_000


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_throttled_replica_that_is_out_of_sync_gets_the_rate_and_one_in_sync_does_not_wait(side: str) -> None:
    async def scenario() -> None:
        now_s = asyncio.get_running_loop().time
        async with Replicas.open(Random(12), configs={f"{side}.replication.throttled.replicas": "*"}) as world:
            late = world.nodes[3]
            late.is_cut_off = True
            world.change(isr=[1, 2])
            for _ in range(200):
                assert await world.produce(VALUE, timeout_ms=30_000) == ErrorCode.NONE
            world.configure_brokers(**{f"{side}_replication_throttled_rate": RATE})
            await asyncio.sleep(15)  # traffic to replicas in sync counts, too: it is forgotten after eleven seconds
            late.is_cut_off = False
            log = late.partition.log
            while log.log_end_offset == 0:
                await asyncio.sleep(0.01)
            began_s = now_s()
            slowest_s = 0.0
            while log.log_end_offset < 150:
                before_s = now_s()
                assert await world.produce(b"small") == ErrorCode.NONE
                slowest_s = max(slowest_s, now_s() - before_s)
                await asyncio.sleep(0.1)
            rate = log.size_bytes / (now_s() - began_s)
            assert 0.8 * RATE < rate < 1.2 * RATE
            assert slowest_s < 0.5, "acks=all waits for replicas in sync, which are not throttled"
            assert world.state.isr == (1, 2)
            world.configure_brokers(**{f"{side}_replication_throttled_rate": 1 << 62})
            await world.settle()
            world.check()

    virtual(scenario())


def test_replica_that_no_setting_lists_is_not_throttled() -> None:
    async def scenario() -> None:
        setting = {"leader.replication.throttled.replicas": "0:2", "follower.replication.throttled.replicas": "1:3,0:2"}
        async with Replicas.open(Random(13), configs=setting) as world:
            late = world.nodes[3]
            late.is_cut_off = True
            world.change(isr=[1, 2])
            world.configure_brokers(leader_replication_throttled_rate=1, follower_replication_throttled_rate=1)
            for _ in range(100):
                assert await world.produce(VALUE, timeout_ms=30_000) == ErrorCode.NONE
            late.is_cut_off = False
            await world.settle()

    virtual(scenario())


async def flushing_replica(world: Replicas, patch: pytest.MonkeyPatch) -> tuple[PartitionLog, "asyncio.Future[int]"]:
    """The log of node 3, which has appended a record and takes 5 s to flush it; and the record's acknowledgement."""
    assert await world.produce(b"a") == ErrorCode.NONE
    await world.settle()
    slow, flush = world.nodes[3].partition.log, PartitionLog.flush

    async def flush_slowly(log: PartitionLog, up_to_offset: int | None = None) -> int:
        if log is slow:
            await asyncio.sleep(5)
        return await flush(log, up_to_offset)

    patch.setattr(PartitionLog, "flush", flush_slowly)
    sent = asyncio.ensure_future(world.produce(b"b", timeout_ms=20_000))
    await asyncio.sleep(0.5)
    assert (slow.log_end_offset, slow.recovery_point, sent.done()) == (2, 1, False)
    return slow, sent


def test_next_leader_is_asked_after_the_flush_of_what_the_last_one_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch acknowledges everything below its offset."""

    async def scenario() -> None:
        async with Replicas.open(Random(1), configs={"flush.messages": 1, "min.insync.replicas": 3}) as world:
            world.configure_brokers(replica_lag_time_max_ms=30_000)
            slow, _ = await flushing_replica(world, monkeypatch)
            world.change(leader=2)
            await asyncio.sleep(1)
            leader = world.nodes[2].partition
            assert leader.is_leading
            assert (leader.follower_ends.get(1), leader.follower_ends.get(3), leader.log.high_watermark) == (2, None, 1)
            await asyncio.sleep(10)
            assert (leader.follower_ends.get(3), leader.log.high_watermark, slow.recovery_point) == (2, 2, 2)

    virtual(scenario())


def test_flushing_replica_that_is_elected_counts_its_end_after_the_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(1), configs={"flush.messages": 1, "min.insync.replicas": 3}) as world:
            world.configure_brokers(replica_lag_time_max_ms=30_000)
            slow, _ = await flushing_replica(world, monkeypatch)
            world.change(leader=3)
            await asyncio.sleep(1)
            leader = world.nodes[3].partition
            assert leader.is_leading
            assert (leader.follower_ends, slow.high_watermark) == ({1: 2, 2: 2}, 1)
            await asyncio.sleep(10)
            assert (slow.high_watermark, slow.recovery_point) == (2, 2)

    virtual(scenario())


def test_replica_whose_flush_fails_does_not_ask_the_next_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(1), configs={"flush.messages": 1, "min.insync.replicas": 3}) as world:
            slow, _ = await flushing_replica(world, monkeypatch)
            world.change(leader=2)
            await asyncio.sleep(1)
            world.nodes[3].held.disk.faults.append(Fault("sync", times=None))
            await asyncio.sleep(20)
            leader = world.nodes[2].partition
            assert (leader.follower_ends.get(3), slow.recovery_point) == (None, 1)
            assert TopicPartition(TOPIC, 0) in world.nodes[3].held.partitions.offline

    virtual(scenario())
