"""Three brokers replicate a partition: nothing acknowledged is lost when brokers die, hang or are cut off."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import virtual
from tests.support.nodes.replicas import LAG_MS, Replicas, values

from ottla.broker.partitions.in_sync import InSyncReplicas, RemoteReplica
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.fetcher import ReplicaFetcher
from ottla.errors.codes import ErrorCode
from ottla.log.read import Isolation


def test_acks_all_is_answered_when_all_in_sync_have_the_record() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(1)) as world:
            assert await world.produce(b"a") == ErrorCode.NONE
            for node in world.nodes.values():
                assert values(node.partition, Isolation.LOG_END) == [b"a"]
            await world.settle()
            world.check()

    virtual(scenario())


def test_killed_leader_is_replaced_and_truncates_what_nobody_has() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(2)) as world:
            assert await world.produce(b"a") == ErrorCode.NONE
            old = world.nodes[1]
            for other in (2, 3):
                world.nodes[other].is_cut_off = True
            assert await world.produce(b"lost", timeout_ms=100) == ErrorCode.REQUEST_TIMED_OUT
            assert values(old.partition, Isolation.HIGH_WATERMARK) == [b"a"], "consumers do not see it"
            await old.stop()
            for other in (2, 3):
                world.nodes[other].is_cut_off = False
            world.fence(old)
            await asyncio.sleep(1)
            assert await world.produce(b"b") == ErrorCode.NONE
            await old.restart()
            await world.settle()
            world.check()
            assert values(old.partition, Isolation.LOG_END) == [b"a", b"b"]

    virtual(scenario())


def test_isr_shrinks_without_a_replica_that_hangs_and_grows_back() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(3)) as world:
            world.nodes[3].is_cut_off = True
            reply = asyncio.ensure_future(world.produce(b"a", timeout_ms=4 * LAG_MS))
            await asyncio.sleep(0.5)
            assert not reply.done(), "node 3 is still in sync"
            assert await reply == ErrorCode.NONE
            assert sorted(world.state.isr) == [1, 2]
            world.nodes[3].is_cut_off = False
            await world.settle()
            world.check()

    virtual(scenario())


def test_replicas_that_lag_are_looked_for_after_an_unexpected_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    honest, calls = Partition.drop_lagging, list[str]()

    def fails_once(self: Partition) -> None:
        calls.append("called")
        if len(calls) == 1:
            raise ZeroDivisionError("a bug")
        honest(self)

    async def scenario() -> None:
        monkeypatch.setattr(Partition, "drop_lagging", fails_once)
        async with Replicas.open(Random(3)) as world:
            world.nodes[3].is_cut_off = True
            assert await world.produce(b"a", timeout_ms=30_000) == ErrorCode.NONE
            assert sorted(world.state.isr) == [1, 2]

    virtual(scenario())
    assert "looking for replicas that lag failed unexpectedly" in caplog.text


def test_too_few_in_sync_are_refused_with_the_log_unchanged() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(4)) as world:
            for other in (2, 3):
                world.nodes[other].is_cut_off = True
            assert await world.produce(b"a", timeout_ms=4 * LAG_MS) == ErrorCode.REQUEST_TIMED_OUT
            assert world.state.isr == (1,)
            leader = world.nodes[1].partition
            assert (leader.log.log_end_offset, leader.log.high_watermark) == (1, 0), "the high watermark stands still"
            assert await world.produce(b"b") == ErrorCode.NOT_ENOUGH_REPLICAS
            assert leader.log.log_end_offset == 1
            for other in (2, 3):
                world.nodes[other].is_cut_off = False
            await world.settle()
            assert leader.log.high_watermark == 1

    virtual(scenario())


def test_idle_partition_stays_in_sync() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(5)) as world:
            await world.produce(b"a")
            await asyncio.sleep(20 * LAG_MS / 1000)
            assert world.state.partition_epoch == 0

    virtual(scenario())


def test_cut_off_leader_acknowledges_nothing_and_truncates_when_it_is_back() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(6)) as world:
            await world.produce(b"a")
            zombie = world.nodes[1]
            zombie.is_cut_off = True
            world.fence(zombie)
            await asyncio.sleep(1)
            assert await world.produce(b"zombie", node=1, timeout_ms=3 * LAG_MS) == ErrorCode.REQUEST_TIMED_OUT
            assert await world.produce(b"b") == ErrorCode.NONE
            zombie.is_cut_off = False
            world.unfence(zombie)
            await world.settle()
            world.check()
            assert values(zombie.partition, Isolation.LOG_END) == [b"a", b"b"]

    virtual(scenario())


def test_replica_that_the_controller_may_have_added_is_waited_for() -> None:
    async def scenario() -> None:
        async with Replicas.open(Random(11)) as world:
            late = world.nodes[3]
            late.is_cut_off = True
            world.change(isr=[1, 2])
            assert await world.produce(b"a", timeout_ms=3 * LAG_MS) == ErrorCode.NONE
            world.nodes[1].is_deaf = True
            late.is_cut_off = False
            while 3 not in world.state.isr:
                await asyncio.sleep(0.01)
            late.is_cut_off = True
            await asyncio.sleep(2 * LAG_MS / 1000)
            leader = world.nodes[1].partition
            assert leader.isr == (1, 2), "the leader does not know that its change was made"
            assert await world.produce(b"b", timeout_ms=2 * LAG_MS) == ErrorCode.REQUEST_TIMED_OUT
            late.is_cut_off = world.nodes[1].is_deaf = False
            world.change(leader=3)
            await asyncio.sleep(1)
            assert await world.produce(b"c") == ErrorCode.NONE
            await world.settle()
            world.check()

    virtual(scenario())


# Seeds


async def run(seed: int, steps: int = 60) -> None:
    """Kills, cuts and elections by chance, while records are produced and read."""
    random = Random(seed)
    async with Replicas.open(random, delay_s=random.choice([0.001, 0.02, 0.2])) as world:
        sends: list[asyncio.Future[int]] = []

        async def watch() -> None:
            while True:
                await asyncio.sleep(0.02)
                for node in world.nodes.values():
                    world.consume(node)

        watching = asyncio.ensure_future(watch())
        for step in range(steps):
            await asyncio.sleep(random.choice([0.0, 0.01, 0.1, 0.5, 1.5]))
            for number in range(random.randrange(4)):
                targets = [node.id for node in world.nodes.values() if node.is_up and node.partition.is_leading]
                for target in targets:
                    value = b"%d-%d-%d" % (step, number, target)
                    sends.append(asyncio.ensure_future(world.produce(value, target, random.choice([50, 1000, 5000]))))
            node = world.nodes[random.choice(list(world.nodes))]
            match random.randrange(8):
                case 0 if sum(each.is_up and not each.is_cut_off for each in world.nodes.values()) == len(world.nodes):
                    await node.stop()
                    await asyncio.sleep(random.random())
                    world.fence(node)
                case 1:
                    world.elect()
                case 2 if node.is_up and not node.is_cut_off:
                    node.is_cut_off = True
                    if random.random() < 0.7:
                        await asyncio.sleep(random.random())
                        world.fence(node)
                case 3 | 4 | 5 if not node.is_up:
                    await node.restart()
                case 3 | 4 | 5 if node.is_cut_off:
                    node.is_cut_off = False
                    if world.image.cluster.brokers[node.id].fenced:
                        world.unfence(node)
        for node in world.nodes.values():
            if not node.is_up:
                await node.restart()
            node.is_cut_off = False
            if world.image.cluster.brokers[node.id].fenced:
                world.unfence(node)
        await asyncio.wait_for(asyncio.gather(*sends), 60)
        deadline_s = asyncio.get_running_loop().time() + 60
        while await world.produce(b"last") != ErrorCode.NONE:
            assert asyncio.get_running_loop().time() < deadline_s, "nothing can be produced any more"
            await asyncio.sleep(0.1)
        await world.settle()
        await work_in_peace(world, random)
        watching.cancel()
        failed = await asyncio.gather(watching, return_exceptions=True)
        assert isinstance(failed[0], asyncio.CancelledError), failed
        world.check()


async def work_in_peace(world: Replicas, random: Random) -> None:
    """Produce for some times replica.lag.time.max.ms, then rest for longer than that before each record.

    Replicas that keep pace stay in sync.
    """
    epoch, sends, lag_s = world.state.partition_epoch, [], LAG_MS / 1000
    pauses_s = [lag_s / 20] * 60 + [random.uniform(1, 1.5) * lag_s for _ in range(8)]
    for number, pause_s in enumerate(pauses_s):
        sends.append(asyncio.ensure_future(world.produce(b"calm %d" % number)))
        await asyncio.sleep(pause_s)
    assert set(await asyncio.gather(*sends)) == {ErrorCode.NONE}
    await world.settle()
    assert world.state.partition_epoch == epoch, "the ISR has changed without a reason"


def test_a_leader_back_before_its_session_ended_keeps_its_epochs() -> None:
    """Node 1 lost records by a power loss, and the metadata still names it as leader of the epoch in which it lost them.

    Node 3 has other records at the same offsets, which nobody else has. It truncates them by what node 1 says of the epochs.
    """

    async def scenario() -> None:
        async with Replicas.open(Random(1), configs={"min.insync.replicas": 1}) as world:
            one, two, three = world.nodes.values()

            async def lead(node: int) -> None:
                if world.state.leader != node:
                    world.change(leader=node)
                await asyncio.sleep(2)

            async def produce(*sent: bytes) -> None:
                for value in sent:
                    assert await world.produce(value, timeout_ms=20_000) == ErrorCode.NONE
                await asyncio.sleep(2)

            await lead(3)
            await produce(b"a", b"b")
            three.is_cut_off = True
            three.partition.append(make_batch(b"of node 3 alone"), 1)
            world.fence(three)
            await lead(2)
            await produce(b"c")
            await one.partition.log.flush()
            await one.held.directories.directories[0].write_checkpoints()
            await produce(b"d")
            await lead(1)
            await produce(b"e")
            await one.stop(silently=True)
            await one.held.restart(power_loss=True)
            assert one.partition.log.log_end_offset == 3
            world.fence(one)
            await one.held.commit(*world.records[len(one.held.records) :])
            one.join()
            await asyncio.sleep(5)
            newest = len(one.partition.log.epochs.entries)
            assert one.partition.log.epochs.entries == two.partition.log.epochs.entries[:newest]
            await lead(1)
            three.is_cut_off = False
            world.unfence(three)
            await world.settle()
            world.check()

    virtual(scenario())


@pytest.mark.parametrize("seed", range(2))
def test_seeds(seed: int) -> None:
    virtual(run(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 300))
def test_many_seeds(seed: int) -> None:
    virtual(run(seed))


def _acknowledge_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InSyncReplicas, "awaited", lambda *_: ())


def _no_truncation(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> None: ...

    patch.setattr(ReplicaFetcher, "_truncate", nothing)


def _never_caught_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RemoteReplica, "fetched", lambda *_: None)


def _rest_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Partitions without news are left alone, but their replicas get no time for it."""
    patch.setattr(RemoteReplica, "rest_in", lambda *_: None)


BREAKS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "acknowledged before replication": _acknowledge_at_once,
    "truncation skipped": _no_truncation,
    "last caught-up time not refreshed": _never_caught_up,
    "last caught-up time not refreshed without news": _rest_forgotten,
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BREAKS)
def test_breaks_are_caught_within_100_seeds(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKS[what](monkeypatch)
    for seed in range(100):
        try:
            virtual(run(seed))
        except Exception:
            return
    pytest.fail(f"100 seeds did not notice: {what}")
