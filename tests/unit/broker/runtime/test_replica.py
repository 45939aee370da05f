"""The driver of a replica: one event at a time, and effects in their order."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from tests.support.nodes.quorum_server import until

from ottla.broker.requests.context import Pending
from ottla.broker.runtime.quorum_peers import QuorumPeers
from ottla.broker.runtime.replica import ReplicaRuntime
from ottla.errors import BrokenInvariant
from ottla.raft import effects as fx
from ottla.raft.election import ElectionState
from ottla.wire.messages.add_raft_voter import AddRaftVoterResponse


class Disk:
    """A disk whose writes end when the test says so."""

    def __init__(self, happened: list[str]) -> None:
        self.happened = happened
        self.may_end = asyncio.Event()

    async def replace_file(self, path: str, data: bytes) -> None:
        self.happened.append("persisting")
        await self.may_end.wait()
        self.happened.append("persisted")


class Log:
    folder = "/d"

    async def write_topic_id(self) -> None: ...


class Answered(Pending):
    __slots__ = ("happened",)

    def __init__(self, happened: list[str]) -> None:
        super().__init__()
        self.happened = happened

    def complete(self, response: Any) -> None:
        self.happened.append("answered")


def driver_of(happened: list[str]) -> tuple[ReplicaRuntime, Disk]:
    history = SimpleNamespace(kraft_version=0, voters=SimpleNamespace(ids=(1,)))
    replica = SimpleNamespace(history=history, deadline_ms=1 << 62, settings=None)
    disk = Disk(happened)
    world = SimpleNamespace(disk=disk, clock=SimpleNamespace(monotonic_s=lambda: 0.0))
    return ReplicaRuntime(
        cast(Any, world), cast(Any, Log()), cast(Any, None), cast(Any, replica), QuorumPeers(None), cast(Any, None)
    ), disk


def event(happened: list[str], name: str, *effects: fx.Effect) -> Callable[[int], list[fx.Effect]]:
    def happens(now_ms: int) -> list[fx.Effect]:
        happened.append(name)
        return list(effects)

    return happens


def test_nothing_leaves_and_no_event_comes_before_the_election_is_on_disk() -> None:
    async def run() -> None:
        happened: list[str] = []
        driver, disk = driver_of(happened)
        answer = fx.Answer(Answered(happened), AddRaftVoterResponse())
        driver.submit(event(happened, "vote", fx.Persist(ElectionState(1)), answer))
        driver.submit(event(happened, "next"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert happened == ["vote", "persisting"]
        disk.may_end.set()
        await until(lambda: "next" in happened, "the next event")
        assert happened == ["vote", "persisting", "persisted", "answered", "next"]

    asyncio.run(run())


def test_broken_invariant_of_the_replica_is_a_failure_of_the_node() -> None:
    async def run() -> None:
        driver, _ = driver_of([])

        def breaks(now_ms: int) -> list[fx.Effect]:
            raise BrokenInvariant("two leaders")

        driver.submit(breaks)
        assert isinstance(driver.failure.result(), BrokenInvariant)
        happened: list[str] = []
        driver.submit(event(happened, "later"))
        assert happened == [], "nothing is decided after a failure"

    asyncio.run(run())


def test_any_number_of_events_may_wait_for_the_disk() -> None:
    async def run() -> None:
        happened: list[str] = []
        driver, disk = driver_of(happened)
        driver.submit(event(happened, "vote", fx.Persist(ElectionState(1))))
        for _ in range(3_000):
            driver.submit(event(happened, "asked"))
        disk.may_end.set()
        await until(lambda: happened.count("asked") == 3_000, "the events")
        assert not driver.failure.done()

    asyncio.run(run())


def test_timer_does_not_tick_while_the_disk_is_waited_for() -> None:
    async def run() -> None:
        happened: list[str] = []
        driver, disk = driver_of(happened)
        replica: Any = driver.replica
        replica.deadline_ms, replica.tick, replica.leader_id = 0, event(happened, "tick"), -1
        driver.submit(event(happened, "vote", fx.Persist(ElectionState(1))))
        driver._is_started = True
        driver._tick()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not driver._events, "the timer would be due again at once, and the queue grow with every turn of the loop"
        replica.deadline_ms = driver.now_ms() + 20
        disk.may_end.set()
        await until(lambda: "tick" in happened, "the tick that was due")
        driver.abort()

    asyncio.run(run())


def test_timer_does_not_tick_after_a_failure() -> None:
    async def run() -> None:
        happened: list[str] = []
        driver, _ = driver_of(happened)
        replica: Any = driver.replica
        replica.deadline_ms, replica.tick = 0, event(happened, "tick")
        driver._is_started = True
        driver.fail(BrokenInvariant("the disk is full"))
        driver._tick()
        assert driver._timer is None, "it would be due again at once, in every turn of the loop"
        assert not happened

    asyncio.run(run())
