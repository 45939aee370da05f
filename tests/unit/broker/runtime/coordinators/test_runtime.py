"""Hosted shards: decisions are answered when committed; loading restores the state; a failed write gives the shard up."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from tests.support.nodes.held_partitions import HeldPartitions, virtual, waiting
from tests.support.shards.tally_shard import TallyShard, record_of, tally_runtime

from ottla.broker.runtime.coordinators import load as loading
from ottla.broker.runtime.coordinators.runtime import RELOAD_DELAY_S, CoordinatorRuntime
from ottla.config.values import InvalidConfig
from ottla.coordinator.contract import Answer, Effects, Instant, Producer, Reply
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC
from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.read import Isolation
from ottla.records.batch import iterate_batches
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.sim.disk import Fault

_LOG_END = Isolation.LOG_END
PRODUCER = Producer(7, 0)


async def opened(
    partitions: int = 1, commit_timeout_ms: int = 5000, **configs: object
) -> tuple[HeldPartitions, CoordinatorRuntime[TallyShard]]:
    held = await HeldPartitions.open()
    await held.make_topic(OFFSETS_TOPIC, partitions, {"cleanup.policy": "compact", **configs})
    runtime = tally_runtime(held, commit_timeout_ms)
    runtime.follow()
    return held, runtime


async def set_to(runtime: CoordinatorRuntime[TallyShard], name: str, number: int) -> Any:
    return await runtime.call(name, lambda shard, reply, now: shard.set(name, number, reply, now))


def numbers(runtime: CoordinatorRuntime[TallyShard], index: int = 0) -> dict[str, int]:
    return runtime.shard_at(index).shard.numbers


async def until_loaded(runtime: CoordinatorRuntime[TallyShard]) -> None:
    runtime.follow()
    while runtime.is_loading:
        await asyncio.sleep(0.01)


def test_a_decision_is_answered_when_its_records_are_committed() -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        assert await set_to(runtime, "a", 1) == "a=1"
        log = held.partition(OFFSETS_TOPIC).log
        assert log.log_end_offset == log.high_watermark == 1
        assert numbers(runtime) == {"a": 1}

    virtual(scenario())


def test_decisions_of_one_turn_share_a_batch_and_see_each_other() -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        replies = [
            waiting(runtime.ask(name, lambda shard, reply, now, name=name: shard.set(name, len(shard.numbers), reply, now)))  # type: ignore[misc]  # bound at once
            for name in "abc"
        ]
        assert held.partition(OFFSETS_TOPIC).log.log_end_offset == 0
        assert await asyncio.gather(*replies) == ["a=0", "b=1", "c=2"]
        info = held.partition(OFFSETS_TOPIC).read(0, 1 << 20, _LOG_END)
        assert info.records is not None
        assert [batch.count for batch in iterate_batches(info.records.read())] == [3]
        assert runtime.shard_at(0).shard.offsets == {"a": 0, "b": 1, "c": 2}

    virtual(scenario())


def test_a_refusal_goes_to_the_caller_and_writes_nothing() -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        with pytest.raises(KafkaError, match="not negative"):
            await set_to(runtime, "a", -1)
        assert held.partition(OFFSETS_TOPIC).log.log_end_offset == 0

    virtual(scenario())


def test_responses_without_records_wait_for_the_replicas_too() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic(OFFSETS_TOPIC, replicas=(1, 2))
        runtime = tally_runtime(held)
        runtime.follow()
        written = asyncio.ensure_future(set_to(runtime, "a", 1))
        await asyncio.sleep(0)
        seen = asyncio.ensure_future(runtime.look("a", lambda shard, now: shard.numbers.get("a")))
        await asyncio.sleep(1)
        assert not written.done()
        assert not seen.done()
        held.partition(OFFSETS_TOPIC).follower_fetches(2, 1, 0, -1)
        assert await asyncio.gather(written, seen) == ["a=1", 1]

    virtual(scenario())


@pytest.mark.parametrize("crash", [False, True])
def test_a_restart_loads_what_was_answered(crash: bool) -> None:
    async def scenario() -> None:
        held, runtime = await opened(partitions=3)
        for number in range(50):
            await set_to(runtime, f"name {number % 20}", number)
        before = [dict(hosted.shard.numbers) for hosted in runtime]
        await runtime.stop()
        await held.restart(crash=crash)
        again = tally_runtime(held)
        await until_loaded(again)
        assert [hosted.shard.numbers for hosted in again] == before
        assert all(hosted.shard.is_loaded for hosted in again)
        assert sum(map(len, before)) == 20

    virtual(scenario())


@pytest.mark.parametrize("read_bytes", range(60, 300, 7))
def test_a_log_that_is_longer_than_one_read_is_loaded_whole(read_bytes: int) -> None:
    """Wherever a read ends: within a batch, within its header, between two."""

    async def scenario() -> None:
        held, runtime = await opened()
        for number in range(20):
            await set_to(runtime, f"name {number}", number)
        before = dict(numbers(runtime))
        await runtime.stop()
        again = tally_runtime(held)
        again.read_bytes = read_bytes
        await until_loaded(again)
        assert numbers(again) == before

    virtual(scenario())


def test_other_tasks_run_while_a_shard_is_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        held, runtime = await opened(partitions=3)
        await asyncio.gather(*(set_to(runtime, f"name {number}", number) for number in range(300)))
        await runtime.stop()
        again = tally_runtime(held)
        again.follow()
        done: list[int] = []
        while again.is_loading:
            loaded = sum(len(hosted.shard.numbers) for hosted in again)
            if loaded not in done:
                done.append(loaded)
            await asyncio.sleep(0)
            turns.append(1)
        assert len(done) == 3, "shards are loaded one after the other, each as a whole"
        assert sum(len(hosted.shard.numbers) for hosted in again) == 300

    turns: list[int] = []
    monkeypatch.setattr(loading, "RECORDS_PER_TURN", 10)
    monkeypatch.setattr(loading, "RECORDS_PER_LOOK", 5)
    virtual(scenario())
    assert len(turns) >= 30


def test_transactional_records_count_on_commit_after_a_restart_too() -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        await set_to(runtime, "a", 1)
        partition = held.partition(OFFSETS_TOPIC)
        for name, producer in (("b", PRODUCER), ("c", Producer(8, 0)), ("d", Producer(9, 0))):
            await runtime.call(
                name,
                lambda shard, reply, now, name=name, producer=producer: shard.set_in_transaction(  # type: ignore[misc]  # bound at once
                    name, 2, producer, reply, now
                ),
                partition.log.producers.begin_verification(producer.id, -1, 0, False, 0),
            )
        for producer, is_commit in ((PRODUCER, True), (Producer(8, 0), False)):
            marker = build_end_marker(
                is_commit=is_commit, producer_id=producer.id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0
            )
            partition.append(marker, -1, origin=AppendOrigin.COORDINATOR)
            runtime.shard_at(0).shard.replay_end(producer, is_commit)
        assert numbers(runtime) == {"a": 1, "b": 2}
        await runtime.stop()
        await held.restart()
        again = tally_runtime(held)
        await until_loaded(again)
        assert numbers(again) == {"a": 1, "b": 2}
        assert again.shard_at(0).shard.pending == {9: {"d": 2}}

    virtual(scenario())


def test_failed_write_gives_up_the_shard_and_fails_parked_requests() -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        await set_to(runtime, "a", 1)
        parked = waiting(runtime.ask("a", TallyShard.park))
        held.disk.faults.append(Fault("append", held.partition(OFFSETS_TOPIC).log.folder + "/*.log"))
        with pytest.raises(KafkaError) as failed:
            await set_to(runtime, "a", 2)
        assert failed.value.code == ErrorCode.NOT_COORDINATOR
        with pytest.raises(KafkaError) as told:
            await parked
        assert told.value.code == ErrorCode.NOT_COORDINATOR
        with pytest.raises(KafkaError) as gone:
            runtime.shard_for("a")
        assert gone.value.code == ErrorCode.NOT_COORDINATOR

    virtual(scenario())


def test_a_decision_too_large_for_a_batch_is_refused_whole() -> None:
    async def scenario() -> None:
        held, runtime = await opened(**{"max.message.bytes": 1000})
        with pytest.raises(KafkaError) as refused:
            await runtime.call(
                "a", lambda shard, reply, now: Effects.answer(reply, None, [record_of("a", 1), record_of("b", 1, "x" * 1000)])
            )
        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
        assert numbers(runtime) == {}
        assert await asyncio.gather(*(set_to(runtime, f"{number}", number) for number in range(40)))
        assert held.partition(OFFSETS_TOPIC).log.log_end_offset == 40

    virtual(scenario())


@pytest.mark.parametrize(
    ("response", "code"),
    [
        ("done", ErrorCode.MESSAGE_TOO_LARGE),
        (KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "join again"), ErrorCode.REBALANCE_IN_PROGRESS),
    ],
)
def test_refused_decision_fails_the_parked_requests_it_would_answer(response: object, code: int) -> None:
    async def scenario() -> None:
        _, runtime = await opened(**{"max.message.bytes": 1000})
        parked = asyncio.ensure_future(runtime.call("a", lambda shard, reply, now: shard.park(reply, now)))
        await asyncio.sleep(0)

        def answer_all(shard: TallyShard, reply: Reply, now: Instant) -> Effects:
            waiting, shard.parked = [*shard.parked, reply], []
            return Effects([record_of("a", 1, "x" * 2000)], [Answer(each, response) for each in waiting])

        with pytest.raises(KafkaError) as refused:
            runtime.ask("a", answer_all)
        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(KafkaError) as told:
            await parked
        assert told.value.code == code

    virtual(scenario())


def test_bound_decision_with_too_large_records_reloads_the_shard() -> None:
    async def scenario() -> None:
        _, runtime = await opened(**{"max.message.bytes": 1000})
        await set_to(runtime, "a", 1)

        def change_first(shard: TallyShard, reply: Reply, now: Instant) -> Effects:
            shard.numbers["a"] = 2
            effects = Effects.answer(reply, None, [record_of("a", 2, "x" * 2000)])
            effects.is_bound = True
            return effects

        with pytest.raises(KafkaError) as refused:
            runtime.ask("a", change_first)
        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
        await asyncio.sleep(RELOAD_DELAY_S)
        await until_loaded(runtime)
        assert numbers(runtime) == {"a": 1}
        assert await set_to(runtime, "a", 3) == "a=3"

    virtual(scenario())


def test_timeout_runs_at_its_deadline_and_is_written() -> None:
    async def scenario() -> None:
        _, runtime = await opened()
        hosted = runtime.shard_at(0)

        def arm(shard: TallyShard, reply: Any, now: Any) -> Effects:
            shard.timers.set("later", now.steady_ms + 700, lambda then: Effects([record_of("late", then.steady_ms)]))
            return Effects.answer(reply, now.steady_ms)

        armed_ms = await runtime.call("a", arm)
        await asyncio.sleep(0.6)
        assert hosted.shard.numbers == {}
        await asyncio.sleep(0.2)
        assert hosted.shard.numbers == {"late": armed_ms + 700}

    virtual(scenario())


def test_alarm_never_fires_a_fraction_of_a_millisecond_early() -> None:
    """2.034 s is 2033 whole milliseconds in floating point: an alarm set for 2034 must not go off until it is that late."""

    async def scenario() -> None:
        _, runtime = await opened()
        hosted = runtime.shard_at(0)
        done: list[int] = []
        alarms: list[int] = []
        expire = hosted._expire

        def expired() -> None:
            alarms.append(1)
            if len(alarms) < 10:  # else it would fire again and again
                expire()

        hosted._expire = expired  # type: ignore[method-assign]  # to count
        for deadline_ms in range(2_004, 3_004, 10):

            def note(then: Any) -> Effects:
                done.append(then.steady_ms)
                return Effects()

            hosted.shard.timers.set(deadline_ms, deadline_ms, note)
            hosted.submit(Effects())
            await asyncio.sleep(deadline_ms / 1000 - asyncio.get_running_loop().time() + 0.002)
            assert len(alarms) < 3, f"the alarm for {deadline_ms} ms went off {len(alarms)} times"
            alarms.clear()
        assert len(done) == 100

    virtual(scenario())


def test_exception_in_a_timeout_reloads_the_shard(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        _, runtime = await opened()
        await set_to(runtime, "a", 1)

        def fail(now: Any) -> Effects:
            raise ValueError("a bug")

        hosted = runtime.shard_at(0)
        hosted.shard.timers.set("bug", 0, fail)
        hosted.submit(Effects())
        await asyncio.sleep(0.01)
        assert hosted.is_over
        await asyncio.sleep(RELOAD_DELAY_S + 0.1)
        assert numbers(runtime) == {"a": 1}

    virtual(scenario())
    assert "a bug" in caplog.text


def test_timeout_with_too_large_records_is_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        _, runtime = await opened(**{"max.message.bytes": 1000})
        hosted = runtime.shard_at(0)
        hosted.shard.timers.set("large", 0, lambda then: Effects([record_of("a", 1, "x" * 2000)]))
        hosted.submit(Effects())
        await asyncio.sleep(0.01)
        assert hosted.is_over
        await asyncio.sleep(RELOAD_DELAY_S + 0.1)
        assert await set_to(runtime, "a", 1)

    virtual(scenario())
    assert "raise max.message.bytes" in caplog.text
    assert "Traceback" not in caplog.text


def test_shard_is_given_up_when_its_partition_loses_leadership() -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        await set_to(runtime, "a", 1)
        parked = waiting(runtime.ask("a", TallyShard.park))
        await held.change(OFFSETS_TOPIC, 0, leader=-1)
        runtime.follow()
        with pytest.raises(KafkaError) as told:
            await parked
        assert told.value.code == ErrorCode.NOT_COORDINATOR
        with pytest.raises(KafkaError) as gone:
            runtime.shard_for("a")
        assert gone.value.code == ErrorCode.NOT_COORDINATOR
        await held.change(OFFSETS_TOPIC, 0, leader=1)
        await until_loaded(runtime)
        assert numbers(runtime) == {"a": 1}
        assert runtime.shard_at(0).epoch == held.partition(OFFSETS_TOPIC).leader_epoch > 0

    virtual(scenario())


def test_request_to_a_given_up_shard_gets_not_coordinator() -> None:
    """ListGroups iterates over all shards; one may have been given up in the meantime."""

    async def scenario() -> None:
        held, runtime = await opened()
        hosted = runtime.shard_at(0)
        hosted.give_up()
        for decide in (lambda shard, now: 1, lambda shard, now: shard.numbers):
            with pytest.raises(KafkaError) as told:
                await asyncio.wait_for(runtime.look_into(hosted, decide), 60)
            assert told.value.code == ErrorCode.NOT_COORDINATOR
        with pytest.raises(KafkaError):
            hosted.ask(lambda shard, reply, now: shard.set("a", 1, reply, now))
        await asyncio.sleep(RELOAD_DELAY_S + 0.1)
        assert held.partition(OFFSETS_TOPIC).log.log_end_offset == 0

    virtual(scenario())


def test_without_the_internal_topic_requests_get_not_coordinator() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        runtime = tally_runtime(held)
        runtime.follow()
        with pytest.raises(KafkaError) as refused:
            runtime.shard_for("a")
        assert refused.value.code == ErrorCode.NOT_COORDINATOR

    virtual(scenario())


def test_decided_records_are_appended_before_a_marker() -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        written = waiting(runtime.ask("a", lambda shard, reply, now: shard.set("a", 1, reply, now)))
        runtime.shard_at(0).write_out()
        marker = build_end_marker(is_commit=True, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0)
        held.partition(OFFSETS_TOPIC).append(marker, -1, origin=AppendOrigin.COORDINATOR)
        assert written.done()
        assert await set_to(runtime, "b", 2) == "b=2"
        assert runtime.shard_at(0).shard.offsets == {"a": 0, "b": 2}

    virtual(scenario())


def test_delay_doubles_when_a_log_cannot_be_replayed(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        await set_to(runtime, "a", 1)
        await runtime.stop()
        tried_s: list[float] = []

        def fail(shard: TallyShard, *record: Any) -> None:
            tried_s.append(held.clock.monotonic_s())
            raise ValueError("a bug")

        with monkeypatch.context() as patch:
            patch.setattr(TallyShard, "replay", fail)
            again = tally_runtime(held)
            again.follow()
            await asyncio.sleep(20)
        assert [round(later - sooner) for sooner, later in pairwise(tried_s)] == [1, 2, 4, 8]
        await asyncio.sleep(20)
        assert numbers(again) == {"a": 1}

    virtual(scenario())
    assert caplog.text.count("could not be replayed") == 5


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_are_compressed_with_the_configured_codec(codec: Codec) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic(OFFSETS_TOPIC)
        runtime = tally_runtime(held)
        runtime.codec = codec
        runtime.follow()
        await runtime.call("a", lambda shard, reply, now: shard.set("a", 7, reply, now))
        await runtime.call(
            "b",
            lambda shard, reply, now: shard.set_in_transaction("b", 8, Producer(5, 0), reply, now),
            held.partition(OFFSETS_TOPIC).log.producers.begin_verification(5, -1, 0, False, 0),
        )
        info = held.partition(OFFSETS_TOPIC).read(0, 1 << 20, Isolation.LOG_END)
        assert info.records is not None
        assert [batch.codec for batch in iterate_batches(info.records.read())] == [codec, codec]
        await runtime.stop()
        again = tally_runtime(held)
        again.follow()
        for task in list(again._loading.values()):
            await task
        assert again.shard_at(0).shard.numbers == {"a": 7}
        assert again.shard_at(0).shard.pending == {5: {"b": 8}}

    virtual(scenario())


def test_unknown_codec_is_refused() -> None:
    async def scenario() -> None:
        with pytest.raises(InvalidConfig, match=r"offsets\.topic\.compression\.codec=9"):
            await HeldPartitions.open({"offsets.topic.compression.codec": "9"})

    virtual(scenario())


async def opened_partitions() -> tuple[HeldPartitions, CoordinatorRuntime[TallyShard]]:
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
        held, runtime = await opened_partitions()
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
        held, runtime = await opened_partitions()
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
        held, runtime = await opened_partitions()
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
