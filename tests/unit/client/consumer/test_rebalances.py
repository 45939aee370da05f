"""The at-least-once loop of docs/clients.md while members come and go, by every assignor of both protocols, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest
from tests.support.nodes.sim_broker import SimBroker, in_virtual_time

from ottla.errors import CommitFailedError
from ottla.ids import TopicPartition

PARTITIONS = 6
MEMBERS = 4
T0 = TopicPartition("t", 0)
QUICK_SESSIONS = {
    "group.consumer.min.session.timeout.ms": "1",
    "group.consumer.session.timeout.ms": "800",
    "group.consumer.heartbeat.interval.ms": "100",
}


def settings_of(assignor: str) -> dict[str, Any]:
    protocol, name = assignor.split(" ")
    if protocol == "consumer":
        return {"group_protocol": protocol, "group_remote_assignor": name}
    quick = {"heartbeat_interval_ms": 100, "session_timeout_ms": 800}
    return {"group_protocol": protocol, "partition_assignment_strategy": name, **quick}


class Storm:
    """Programs that run the loop, end soon and start again. `stalls`: they also hang, and so does their network."""

    def __init__(self, broker: SimBroker, seed: int, *, stalls: bool, **settings: Any) -> None:
        self._broker = broker
        self._seed = seed
        self._stalls = stalls
        self._settings = {"group_id": "g", "enable_auto_commit": False, "max_poll_records": 20, **settings}
        self._is_over = False
        self.handled: Counter[int] = Counter()
        self.lives = 0
        self.refused: list[CommitFailedError] = []

    async def run(self, seconds: float) -> int:
        """Returns the number of records that were sent; every one is handled."""
        await self._broker.create_topic("t", PARTITIONS)
        loop = asyncio.get_running_loop()
        programs = [asyncio.ensure_future(self._program(number)) for number in range(MEMBERS)]
        cuts = asyncio.ensure_future(self._cut_connections())
        sent = 0
        async with self._broker.producer() as producer:
            while loop.time() < seconds:
                for _ in range(5):
                    await producer.send("t", b"%d" % sent, partition=sent % PARTITIONS)
                    sent += 1
                await asyncio.sleep(0.1)
        async with asyncio.timeout(60):
            while len(self.handled) < sent:
                await asyncio.sleep(0.1)
        self._is_over = True
        await asyncio.gather(cuts, *programs)
        return sent

    async def _program(self, number: int) -> None:
        random, loop = Random(f"{self._seed}/{number}"), asyncio.get_running_loop()
        while not self._is_over:
            ends_s = loop.time() + random.uniform(0.2, 3)
            self.lives += 1
            async with self._broker.consumer(**self._settings) as consumer:
                consumer.subscribe(["t"])
                while loop.time() < ends_s and not self._is_over:
                    records = await consumer.poll(0.2)
                    for record in records:
                        if random.random() < 0.2:
                            hangs = self._stalls and random.random() < 0.05
                            await asyncio.sleep(random.uniform(0, 3 if hangs else 0.02))
                        self.handled[int(record.value or b"")] += 1
                    if records:
                        try:
                            await consumer.commit()
                        except CommitFailedError as error:
                            self.refused.append(error)
            await asyncio.sleep(random.uniform(0, 0.4))

    async def _cut_connections(self) -> None:
        random, broker = Random(self._seed), self._broker
        while self._stalls and not self._is_over:
            await asyncio.sleep(random.uniform(0.5, 4))
            if random.random() < 0.2:
                broker.machine.kill()
                broker.machine.start()
                assert await broker.machine.wait_up()
            else:
                broker.network.part(f"client-{random.randrange(self.lives) + 2}", "node")
                await asyncio.sleep(random.uniform(0.1, 2))
                broker.network.heal()


ASSIGNORS = [
    "classic cooperative-sticky",
    "consumer uniform",
    *(
        pytest.param(each, marks=pytest.mark.slow)
        for each in ("classic range", "classic roundrobin", "classic sticky", "consumer range")
    ),
]


def calm(assignor: str, seed: int, seconds: float) -> None:
    async def scenario(broker: SimBroker) -> None:
        storm = Storm(broker, seed, stalls=False, **settings_of(assignor))
        sent = await storm.run(seconds)
        assert storm.refused == [], "members that leave in good order hand their partitions over"
        assert set(storm.handled) == set(range(sent))
        assert max(storm.handled.values()) == 1

    in_virtual_time(scenario, QUICK_SESSIONS)


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_no_commit_fails_and_nothing_is_read_twice_while_members_come_and_go(assignor: str) -> None:
    calm(assignor, 2, 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("assignor", [each if isinstance(each, str) else each.values[0] for each in ASSIGNORS])
def test_the_loop_survives_members_that_hang_and_brokers_that_die(assignor: Any, seed: int) -> None:
    calm(assignor, seed, 30)

    async def scenario(broker: SimBroker) -> None:
        storm = Storm(broker, seed, stalls=True, max_poll_interval_ms=1_000, **settings_of(assignor))
        sent = await storm.run(30)
        assert set(storm.handled) == set(range(sent))
        assert storm.refused, "members that hang lose their partitions"

    in_virtual_time(scenario, QUICK_SESSIONS)


@pytest.mark.parametrize("assignor", ["classic range", "consumer uniform"])
def test_a_member_that_was_replaced_and_joined_again_cannot_overwrite_a_commit(assignor: str) -> None:
    async def scenario(broker: SimBroker) -> None:
        await broker.create_topic("t")
        await broker.produce("t", b"0", b"1", b"2")
        member = {"group_id": "g", "enable_auto_commit": False, **settings_of(assignor)}
        async with broker.consumer(**member, max_poll_records=1) as slow, broker.consumer(**member) as other:
            slow.subscribe(["t"])
            assert [record.offset for record in await slow.poll(60)] == [0]
            cut_off = slow._world.network._host.name  # type: ignore[attr-defined]
            broker.network.part(cut_off, "node")
            other.subscribe(["t"])
            assert [record.offset for record in await other.poll(60)] == [0, 1, 2]
            await other.commit()
            broker.network.heal()
            poll = asyncio.ensure_future(other.poll(60))
            await asyncio.sleep(10)
            assert slow.group_metadata().generation_id > 0, "its program works on and has not heard of anything"
            with pytest.raises(CommitFailedError, match=r"the offsets of t-0 were not committed .* Go on with the next poll"):
                await slow.commit()
            with pytest.raises(CommitFailedError):
                await slow.commit({T0: 1})
            stored = await slow.committed(T0)
            assert stored is not None
            assert stored.offset == 3
            poll.cancel()
            await asyncio.wait([poll])

    in_virtual_time(scenario, QUICK_SESSIONS)
