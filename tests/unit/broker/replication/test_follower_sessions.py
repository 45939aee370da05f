"""A follower's session looks only at partitions with news, and loses nothing by it."""

import asyncio
from random import Random

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import virtual
from tests.support.nodes.replicas import LAG_MS, SETTINGS, TOPIC, Replicas

from ottla.broker.fetch_sessions import FetchedPartition
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.follower_sessions import FollowerSession
from ottla.errors.codes import ErrorCode

LAG_S = LAG_MS / 1000


def watches(partition: Partition) -> list[tuple[FetchedPartition, FollowerSession]]:
    """The followers' sessions with a partition."""
    found = []
    for watch in partition.follower_watches:
        assert isinstance(watch, FetchedPartition)
        assert watch.follower is not None
        found.append((watch, watch.follower))
    return found


def test_fetches_of_an_idle_partition_do_not_look_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(1)) as world:
            assert await world.produce(b"a") == ErrorCode.NONE
            await world.settle()
            await asyncio.sleep(1)
            leader = world.nodes[1].partition
            before = [follower.fetched_s for _, follower in watches(leader)]
            looked: list[int] = []
            monkeypatch.setattr(Partition, "follower_fetches", lambda self, replica, *_: looked.append(replica))
            await asyncio.sleep(5)
            assert looked == []
            now_s = asyncio.get_running_loop().time()
            assert len(before) == 2, "one session of each follower"
            for (watch, follower), then_s in zip(watches(leader), before, strict=True):
                assert follower.fetched_s > then_s + 4, "they go on fetching"
                assert watch.resting is not None
                assert leader.in_sync is not None
                assert now_s - leader.in_sync.remote[follower.replica_id].caught_up_s < 1, "each fetch finds it caught up"

    virtual(scenario())


def test_replica_that_has_rested_for_long_is_given_its_time_after_an_append() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(2)) as world:
            assert await world.produce(b"a") == ErrorCode.NONE
            await asyncio.sleep(10 * LAG_S)
            world.nodes[3].is_cut_off = True
            reply = asyncio.ensure_future(world.produce(b"b", timeout_ms=4 * LAG_MS))
            await asyncio.sleep(0.7 * LAG_S)
            assert sorted(world.state.isr) == [1, 2, 3], "it was caught up less than replica.lag.time.max.ms ago"
            assert not reply.done()
            await asyncio.sleep(1.5 * LAG_S)
            assert sorted(world.state.isr) == [1, 2]
            assert await reply == ErrorCode.NONE

    virtual(scenario())


def test_replica_outside_the_isr_does_not_rest_until_it_is_in_it() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(3)) as world:
            assert await world.produce(b"a") == ErrorCode.NONE
            await world.settle()
            late = world.nodes[3]
            world.fence(late)
            await asyncio.sleep(2)
            leader = world.nodes[1].partition
            assert sorted(leader.isr) == [1, 2]
            (out,) = [watch for watch, follower in watches(leader) if follower.replica_id == 3]
            assert out.resting is None
            world.unfence(late)
            await asyncio.sleep(2)
            assert sorted(world.state.isr) == [1, 2, 3], "a fetch without any news let it in"
            assert out.resting is not None

    virtual(scenario())


def test_partitions_far_behind_do_not_hold_up_one_that_is_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "replica.fetch.max.bytes", "10000")
    monkeypatch.setitem(SETTINGS, "replica.fetch.response.max.bytes", "40000")

    async def scenario() -> None:
        async with Replicas.open(Random(1)) as world:
            for index in range(1, 9):  # more than fit into a response
                world.add_partition(index)
            await asyncio.sleep(1)
            assert await world.produce(b"a") == ErrorCode.NONE
            for index in range(1, 9):
                behind = world.nodes[1].held.partition(TOPIC, index)
                while behind.log.size_bytes < 150_000:
                    behind.append(make_batch(b"x" * 5000), 1)
            await asyncio.sleep(0.1)
            begun_s = asyncio.get_running_loop().time()
            assert await world.produce(b"b") == ErrorCode.NONE
            assert asyncio.get_running_loop().time() - begun_s < 0.4
            ends = [world.nodes[2].held.partition(TOPIC, index).log.size_bytes for index in range(1, 9)]
            assert min(ends) < 150_000, "the others still catch up"

    virtual(scenario())


def test_new_broker_epoch_is_noted_in_partitions_without_news() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(4)) as world:
            await world.produce(b"a")
            await world.settle()
            await asyncio.sleep(1)
            world.register(world.nodes[3])
            await asyncio.sleep(2)
            in_sync = world.nodes[1].partition.in_sync
            assert in_sync is not None
            assert in_sync.broker_epoch(3) == world.nodes[3].epoch

    virtual(scenario())


def test_log_start_that_nobody_has_noted_is_found_with_the_lagging_replicas() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(5)) as world:
            await world.produce(b"a")
            await world.settle()
            await asyncio.sleep(1)
            world.nodes[1].partition.log.delete_records(1)
            await asyncio.sleep(LAG_S)
            assert [node.partition.log.log_start_offset for node in world.nodes.values()] == [1, 1, 1]

    virtual(scenario())


def test_restarted_follower_takes_the_place_of_its_earlier_session() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(6)) as world:
            await world.produce(b"a")
            await world.settle()
            leader = world.nodes[1].partition
            (old,) = [watch for watch, follower in watches(leader) if follower.replica_id == 3]
            await world.nodes[3].stop()
            await world.nodes[3].restart()
            await world.settle()
            await world.produce(b"b")
            (new,) = [watch for watch, follower in watches(leader) if follower.replica_id == 3]
            assert new is not old
            assert old.partition is None
            assert world.nodes[3].partition.log.log_end_offset == 2

    virtual(scenario())


def test_partition_that_is_forgotten_is_not_watched_any_more() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(7)) as world:
            await world.produce(b"a")
            await world.settle()
            for node in (2, 3):
                await world.nodes[node].replication.stop()
            leader = world.nodes[1]
            sessions = leader.held.context(1, 12).services.fetch_sessions
            assert len(watches(leader.partition)) == 2
            for session_id in list(sessions._sessions):
                sessions._end(session_id)
            assert not leader.partition.follower_watches

    virtual(scenario())
