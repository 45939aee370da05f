"""A coordinator that loses its partition answers NOT_COORDINATOR at once, and loads at once when it leads again."""

import asyncio
from typing import Any

import pytest
from tests.support.nodes.held_partitions import HeldPartitions, virtual
from tests.support.shards.tally_shard import TallyShard, tally_runtime

from ottla.broker.runtime.coordinators.runtime import RELOAD_DELAY_S, CoordinatorRuntime
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC


async def opened() -> tuple[HeldPartitions, CoordinatorRuntime[TallyShard]]:
    """A coordinator whose log holds a=1."""
    held = await HeldPartitions.open()
    await held.make_topic(OFFSETS_TOPIC, 1, {"cleanup.policy": "compact"})
    runtime = tally_runtime(held)
    runtime.follow()
    assert await runtime.call("a", lambda shard, reply, now: shard.set("a", 1, reply, now)) == "a=1"
    return held, runtime


def code_for(runtime: CoordinatorRuntime[TallyShard]) -> int:
    with pytest.raises(KafkaError) as refused:
        runtime.shard_for("a")
    return refused.value.code


def test_partition_lost_during_a_load_gets_not_coordinator_at_once() -> None:
    """A classic Heartbeat takes LOAD_IN_PROGRESS for success: its member would stay with a node that lost the group."""

    async def scenario() -> None:
        held, runtime = await opened()
        await runtime.stop()
        again = tally_runtime(held)
        again.follow()
        assert code_for(again) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await held.change(OFFSETS_TOPIC, 0, leader=-1)
        assert code_for(again) == ErrorCode.NOT_COORDINATOR, "also before it follows"
        again.follow()
        assert code_for(again) == ErrorCode.NOT_COORDINATOR
        assert not again.is_loading
        await held.change(OFFSETS_TOPIC, 0, leader=1)
        again.follow()
        while again.is_loading:
            await asyncio.sleep(0.01)
        assert again.shard_at(0).shard.numbers == {"a": 1}

    virtual(scenario())


def test_partition_lost_before_its_reload_gets_not_coordinator_and_no_timer() -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        runtime.shard_at(0).give_up()
        assert code_for(runtime) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await held.change(OFFSETS_TOPIC, 0, leader=-1)
        runtime.follow()
        assert code_for(runtime) == ErrorCode.NOT_COORDINATOR
        await held.change(OFFSETS_TOPIC, 0, leader=1)
        runtime.follow()
        await asyncio.sleep(RELOAD_DELAY_S / 10)
        assert runtime.shard_at(0).shard.numbers == {"a": 1}, "loaded at once, not by the timer"

    virtual(scenario())


def test_failed_load_of_a_lost_partition_does_not_delay_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        await runtime.stop()

        def fail(shard: TallyShard, *record: Any) -> None:
            raise ValueError("a bug")

        again = tally_runtime(held)
        with monkeypatch.context() as patch:
            patch.setattr(TallyShard, "replay", fail)
            again.follow()
            held.partition(OFFSETS_TOPIC).is_leading = False
            again.follow()
            await asyncio.sleep(0.01)
        held.partition(OFFSETS_TOPIC).is_leading = True
        again.follow()
        await asyncio.sleep(RELOAD_DELAY_S / 10)
        assert again.shard_at(0).shard.numbers == {"a": 1}

    virtual(scenario())
