"""Loop health: holds are counted by cause, and logged with request, client and place, but not too often."""

import asyncio

import pytest

from ottla.broker.requests.context import ConnectionInfo
from ottla.broker.requests.counters import ApiCounters
from ottla.broker.requests.loop_health import LINE_EVERY_S, NOTED_S, LoopHealth, RequestHold
from ottla.env.loop_watch import LoopTurn
from ottla.sim.loop import VirtualLoop

PEER = ConnectionInfo(1, "PLAINTEXT", ("10.0.0.7", 5123))


class Watch:
    """A `LoopWatch` that reports what the test says."""

    def __init__(self, can_watch: bool = True) -> None:
        self.can_watch = can_watch

    def start(self, on_turn: object) -> bool:
        return self.can_watch

    def stop(self) -> None: ...


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def health_of(clock: Clock, is_watched: bool = True) -> LoopHealth:
    health = LoopHealth(clock)
    health.watch(Watch() if is_watched else None)
    return health


def hold(held_s: float, began_s: float = 100.0, api: str = "Produce") -> RequestHold:
    return RequestHold(began_s, held_s, api, 9, 4096, "etl", PEER)


def turn(held_s: float, *frames: str, began_s: float = 100.0, task: "asyncio.Task[None] | None" = None) -> LoopTurn:
    return LoopTurn(began_s, held_s, frames, task, 1.0)


def test_longest_hold_is_kept_and_the_bound_for_notes_follows_it() -> None:
    health, counters = health_of(Clock()), ApiCounters()
    health.note_request(counters, hold(0.01))
    assert (counters.hold_s_max, counters.hold_noted_s) == (0.01, 0.01)
    health.note_request(counters, hold(0.5))
    health.note_request(counters, hold(0.1))
    assert (counters.hold_s_max, counters.hold_noted_s) == (0.5, NOTED_S)
    assert health.holds_of_requests == {"Produce": 1}


def test_line_names_request_client_and_place(caplog: pytest.LogCaptureFixture) -> None:
    health = health_of(Clock())
    health.note_request(ApiCounters(), hold(0.312))
    assert not caplog.records  # the turn has not ended: its place is not known yet
    health.turn_ended(turn(0.32, "ottla.log.time_lookup.find:88", "ottla.broker.requests.pipeline.dispatch:12"))
    (line,) = caplog.messages
    assert line == (
        "the event loop was held for 312 ms by Produce version 9 of 4096 bytes (client id 'etl') from 10.0.0.7:5123 on "
        "PLAINTEXT; seen in ottla.log.time_lookup.find:88 < ottla.broker.requests.pipeline.dispatch:12"
    )
    assert not health.work


def test_without_a_watch_the_request_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    health = health_of(Clock(), is_watched=False)
    health.note_request(ApiCounters(), hold(0.312))
    assert "held for 312 ms by Produce version 9" in caplog.text


def test_one_line_per_cause_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    health = health_of(clock)
    for _ in range(5):
        health.note_request(ApiCounters(), hold(0.3))
        health.turn_ended(turn(0.3))
    health.note_request(ApiCounters(), hold(0.3, api="Fetch"))
    health.turn_ended(turn(0.3))
    assert [message.split(" by ")[1].split()[0] for message in caplog.messages] == ["Produce", "Fetch"]
    clock.now_s += LINE_EVERY_S
    health.note_request(ApiCounters(), hold(0.3, clock.now_s))
    health.turn_ended(turn(0.3, began_s=clock.now_s))
    assert "(4 more such holds since the last line)" in caplog.messages[-1]
    assert health.holds_of_requests == {"Produce": 6, "Fetch": 1}


@pytest.mark.parametrize(
    ("frame", "work"),
    [
        ("ottla.broker.node._publish:210", "publishing"),
        ("ottla.log.compaction.compactor.swap:9", "compaction"),
        ("ottla.broker.runtime.coordinators.load.load:70", "coordinators"),
        ("ottla.broker.metrics.page:50", "metrics"),
        ("zlib.compress:1", "other"),
    ],
)
def test_background_work_is_named_by_its_stack(frame: str, work: str, caplog: pytest.LogCaptureFixture) -> None:
    health = health_of(Clock())
    health.turn_ended(turn(0.15, "ottla.log.partition_log.x:1", frame))
    assert not caplog.records
    health.turn_ended(turn(0.25, "ottla.log.partition_log.x:1", frame))
    assert f"held for 250 ms by background work: {work}; seen in" in caplog.text
    assert (health.work[work].hold_s_max, health.work[work].holds) == (0.25, 1)


def test_many_requests_in_one_turn_are_logged_with_the_longest(caplog: pytest.LogCaptureFixture) -> None:
    health = health_of(Clock())
    for number in range(5):
        health.note_request(ApiCounters(), hold(0.05 + number / 100, 100.0 + number / 10))
    health.turn_ended(turn(0.36, "ottla.broker.requests.pipeline.dispatch:12"))
    assert "held for 360 ms by 5 requests in one turn; the longest, with 90 ms, was Produce version 9" in caplog.text
    assert health.work["requests"].holds == 1


def test_requests_that_took_a_small_part_of_a_turn_are_not_blamed(caplog: pytest.LogCaptureFixture) -> None:
    health = health_of(Clock())
    health.note_request(ApiCounters(), hold(0.05))
    health.turn_ended(turn(0.9, "ottla.broker.node._publish:210"))
    assert "held for 900 ms by background work: publishing" in caplog.text


def test_requests_of_earlier_turns_are_not_blamed(caplog: pytest.LogCaptureFixture) -> None:
    health = health_of(Clock())
    health.note_request(ApiCounters(), hold(0.05, 90.0))
    health.turn_ended(turn(0.3))
    assert "background work: other" in caplog.text


def test_step_of_a_requests_task_is_logged_with_the_request(caplog: pytest.LogCaptureFixture) -> None:
    async def whole() -> None:
        health = health_of(Clock())
        task = asyncio.get_running_loop().create_task(asyncio.sleep(0))
        health.follow_task(task, hold(0.0, api="CreateTopics"))
        health.turn_ended(turn(0.4, "ottla.broker.handlers.admin.create_topics.work:3", task=task))
        await task
        await asyncio.sleep(0)
        assert not health.requests_of_tasks
        assert health.work["CreateTopics"].holds == 1

    VirtualLoop(1000).run(whole())
    assert "held for 400 ms by a task for CreateTopics version 9 of 4096 bytes (client id 'etl') from 10.0.0.7" in caplog.text


def test_hold_without_processor_time_says_so(caplog: pytest.LogCaptureFixture) -> None:
    health = health_of(Clock())
    health.turn_ended(LoopTurn(100.0, 0.3, ("ottla.x.y:1",), None, 0.1))
    assert "waited for the device, a lock or the processor 90 % of the time" in caplog.text
