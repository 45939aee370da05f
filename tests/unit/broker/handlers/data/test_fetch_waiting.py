"""Fetches parked for new records, and fetches that wait for old records to be read into the page cache."""

import asyncio
from typing import Any

import pytest
from tests.support.logs.batches import make_batch, sized_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual, waiting
from tests.support.peers.fetching import MEGABYTE, bytes_of, fetch_of, found, node, part, values

from ottla.broker import fetch_sessions
from ottla.broker.requests.context import Pending
from ottla.errors.codes import ErrorCode


async def after(seconds: float, held: HeldPartitions, *produce: Any) -> None:
    await asyncio.sleep(seconds)
    held.produced(*produce)


def test_a_fetch_without_records_waits_for_them() -> None:
    async def scenario() -> None:
        held = await node()
        reply = waiting(held.fetch(fetch_of("t", part(0), part(1))))
        await asyncio.gather(after(0.1, held, "t", 1, make_batch(b"a")), reply)
        assert held.clock.monotonic_s() == pytest.approx(0.1)
        assert values(reply.result()) == [[], [b"a"]]
        assert not any(partition.watches for partition in held.partitions)

    virtual(scenario())


def test_appends_of_one_loop_turn_are_sent_in_one_response() -> None:
    async def scenario() -> None:
        held = await node()
        reply = waiting(held.fetch(fetch_of("t", part(0), part(1))))
        for value in (b"a", b"b"):
            held.produced("t", 0, make_batch(value))
        held.produced("t", 1, make_batch(b"c"))
        assert not reply.done(), "the producers are answered first"
        assert values(await reply) == [[b"a", b"b"], [b"c"]]

    virtual(scenario())


def test_waiting_ends_when_the_time_is_over() -> None:
    async def scenario() -> None:
        held = await node()
        held.produced("t", 0, make_batch(b"a"))
        reply = waiting(held.fetch(fetch_of("t", part(0), min_bytes=1000, max_wait_ms=300)))
        assert values(await reply) == [[b"a"]], "with what there is"
        assert held.clock.monotonic_s() == pytest.approx(0.3)
        assert not held.partition("t").watches

    virtual(scenario())


@pytest.mark.parametrize("isolation", [0, 1])
def test_min_bytes_are_waited_for_over_all_partitions(isolation: int) -> None:
    async def scenario() -> None:
        held = await node()
        batch = len(sized_batch(400))
        request = fetch_of("t", part(0), part(1), min_bytes=3 * batch, max_wait_ms=10_000, isolation_level=isolation)
        reply = waiting(held.fetch(request))
        for index in (0, 1):
            held.produced("t", index, sized_batch(400))
            await asyncio.sleep(1)
            assert not reply.done()
        held.produced("t", 0, sized_batch(400))
        assert [len(bytes_of(data)) for data in found(await reply)] == [2 * batch, batch]
        assert held.clock.monotonic_s() == pytest.approx(2)

    virtual(scenario())


def test_append_to_another_partition_does_not_wake_a_fetch() -> None:
    async def scenario() -> None:
        held = await node()
        reply = waiting(held.fetch(fetch_of("t", part(0))))
        held.produced("t", 1, make_batch(b"a"))
        await asyncio.sleep(0.1)
        assert not reply.done()
        await reply
        assert held.clock.monotonic_s() == pytest.approx(0.5)

    virtual(scenario())


def test_fetch_without_max_wait_is_answered_at_once() -> None:
    async def scenario() -> None:
        held = await node()
        for more in ({"max_wait_ms": 0}, {"min_bytes": 0}):
            assert values(held.fetch(fetch_of("t", part(0), **more))) == [[]]
        assert found(held.fetch(fetch_of("t"))) == []

    virtual(scenario())


def test_records_that_are_not_flushed_yet_are_waited_for() -> None:
    async def scenario() -> None:
        held = await node(flush_messages=1)
        reply = waiting(held.fetch(fetch_of("t", part(0))))
        produced = waiting(held.produce("t", 0, make_batch(b"a")))
        await produced
        assert values(await reply) == [[b"a"]]
        assert held.clock.monotonic_s() == 0

    virtual(scenario())


def test_records_appended_before_the_fetch_but_flushed_after_it_wake_it() -> None:
    async def scenario() -> None:
        held = await node(flush_messages=1)
        held.produce("t", 0, make_batch(b"a"))
        assert held.partition("t").log.high_watermark == 0
        assert values(await waiting(held.fetch(fetch_of("t", part(0))))) == [[b"a"]]
        assert held.clock.monotonic_s() == 0

    virtual(scenario())


def test_a_thousand_waiting_fetches_are_answered_a_few_at_a_time() -> None:
    async def scenario() -> None:
        held = await node()
        replies = [waiting(held.fetch(fetch_of("t", part(0)))) for _ in range(1000)]
        held.produced("t", 0, make_batch(b"a"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert 0 < sum(reply.done() for reply in replies) < 100
        assert [values(response) for response in await asyncio.gather(*replies)] == [[[b"a"]]] * 1000
        assert held.clock.monotonic_s() == 0

    virtual(scenario())


def test_abandoned_fetch_watches_no_partition() -> None:
    async def scenario() -> None:
        held = await node()
        pending = held.fetch(fetch_of("t", part(0)))
        assert isinstance(pending, Pending)
        pending.abandon()
        assert not held.partition("t").watches
        held.produced("t", 0, make_batch(b"a"))
        await asyncio.sleep(1)

    virtual(scenario())


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("deleted", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("no leader", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("another epoch", ErrorCode.FENCED_LEADER_EPOCH),
        ("failed disk", ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_parked_fetch_ends_on_deletion_new_leader_or_failed_disk(what: str, code: int) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        reply = waiting(held.fetch(fetch_of("t", part(0, current_leader_epoch=0 if what == "another epoch" else -1))))
        if what == "deleted":
            await held.delete_topic("t")
        elif what == "no leader":
            await held.change("t", 0, leader=-1)
        elif what == "another epoch":
            await held.change("t", 0, leader=1)
        else:
            log = held.partition("t").log
            held.partitions.lose_directory(log.fail(OSError(5, "broken")), log)
        (data,) = found(await reply)
        assert held.clock.monotonic_s() == 0
        assert data.error_code == code

    virtual(scenario())


# Records that are not in memory


async def old_records() -> HeldPartitions:
    """Partition 0 has much more than what counts as just written, partition 1 a little."""
    held = await node(segment_bytes=3 << 20)
    for _ in range(10):
        held.produced("t", 0, sized_batch(900_000))
    held.produced("t", 1, sized_batch(900))
    held.disk.is_cold = True
    return held


def test_old_records_are_read_by_a_worker_before_they_are_sent() -> None:
    async def scenario() -> None:
        held = await old_records()
        reply = waiting(held.fetch(fetch_of("t", part(0), part(1))))
        response = await reply
        assert held.disk.counts["warm"] == 1, "partition 1 was just written"
        assert [len(bytes_of(data)) for data in found(response)] == [MEGABYTE, len(sized_batch(900))]
        held.disk.is_cold = False
        assert found(held.fetch(fetch_of("t", part(0), part(1))))[0].error_code == 0, "at once, if they are in memory"

    virtual(scenario())


def test_recent_records_are_sent_without_asking_the_page_cache() -> None:
    async def scenario() -> None:
        held = await old_records()
        assert len(found(held.fetch(fetch_of("t", part(0, offset=9), part(1))))) == 2

    virtual(scenario())


def test_parked_fetch_warms_old_records_too() -> None:
    async def scenario() -> None:
        held = await old_records()
        reply = waiting(held.fetch(fetch_of("t", part(0), part(1, offset=1), min_bytes=MEGABYTE + 100, max_wait_ms=50)))
        assert [len(bytes_of(data)) for data in found(await reply)] == [MEGABYTE, 0]
        assert held.disk.counts["warm"] == 1

    virtual(scenario())


def test_a_disk_that_cannot_read_takes_its_directory_offline() -> None:
    async def scenario() -> None:
        held = await old_records()
        held.disk.fail("warm")
        response = await waiting(held.fetch(fetch_of("t", part(0), part(1))))
        broken, whole = found(response)
        assert (broken.error_code, broken.records, broken.high_watermark) == (ErrorCode.KAFKA_STORAGE_ERROR, b"", -1)
        assert whole.records
        assert held.partitions.find("t", 0) is None

    virtual(scenario())


def test_read_error_on_a_disk_the_log_has_left_keeps_it_online() -> None:
    async def scenario() -> None:
        held = await old_records()
        held.disk.fail("warm")
        reply = waiting(held.fetch(fetch_of("t", part(0), part(1))))
        partition = held.partitions.find("t", 0)
        assert partition is not None
        partition.log.folder = "/elsewhere/t-0"  # a move that completed before the worker read
        broken, _ = found(await reply)
        assert (broken.error_code, broken.records) == (ErrorCode.KAFKA_STORAGE_ERROR, b"")
        assert held.partitions.find("t", 0) is partition, "its new disk is not to blame"

    virtual(scenario())


def test_parked_partitions_without_a_session_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests can name any number of partitions, which take memory while the request is parked."""
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_MAX", 3)

    async def scenario() -> None:
        held = await node()
        first = held.fetch(fetch_of("t", part(0), part(1)))
        assert isinstance(first, Pending)
        assert not isinstance(held.fetch(fetch_of("t", part(0), part(1))), Pending), "answered with what there is: nothing"
        second = held.fetch(fetch_of("t", part(0), max_wait_ms=100))
        assert isinstance(second, Pending)
        await waiting(second)
        first.abandon()
        first.abandon()
        assert isinstance(held.fetch(fetch_of("t", part(0), part(1))), Pending), "those before have left"
        assert isinstance(held.fetch(fetch_of("t", part(0))), Pending)
        assert not isinstance(held.fetch(fetch_of("t", part(0))), Pending)

    virtual(scenario())
