"""Both workers against a broker: retries, dead letters, order, back-pressure, rebalances and their end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import ottla
from ottla import ConsumerRecord, DeadLetters, Retry, TopicPartition, aio
from ottla.errors import ConfigError
from ottla.testing import Broker
from ottla.worker.core import PREFIX

HANG_S = 60.0
QUICK = Retry(attempts=3, backoff_s=0.01)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker, ottla.Admin(broker.bootstrap_servers) as broker.admin:
        load_modules(broker)
        yield broker


def load_modules(broker: Broker) -> None:
    """Use everything once in this thread. pytest rewrites modules as they are imported, and two threads of Python 3.11 that
    do so at the same time fail with "AST constructor recursion depth mismatch".
    """
    address = broker.bootstrap_servers
    settings: dict[str, Any] = {"group_id": "load", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    broker.create_topic("load")
    broker.produce("load", "x")
    with ottla.Consumer(address, **settings) as consumer, ottla.Producer(address) as producer:
        consumer.subscribe("load")
        [record] = consumer.poll(HANG_S)
        consumer.pause(consumer.assignment())
        consumer.commit_async(record)
        consumer.commit(record)
        producer.send("load.dead", b"x", headers=[("h", b"x")]).result(HANG_S)

    async def load_aio() -> None:
        async with aio.Consumer(address, **settings) as consumer, aio.Producer(address) as producer:
            consumer.subscribe("load")
            await consumer.poll(0.1)
            await (await producer.send("load.dead", b"x"))

    asyncio.run(load_aio())
    assert ottla.Worker is not aio.Worker
    assert committed(broker, "load") == [1, 0]


class Run:
    """A worker of one face that runs in a thread."""

    def __init__(self, broker: Broker, kind: str, topic: str, handle: Callable[[ConsumerRecord], Any], **options: Any) -> None:
        self.broker, self.kind, self.topic, self.handle = broker, kind, topic, handle
        self.settings = options.pop("settings", {})
        self.dead_topic = options.pop("dead_topic", None)
        self.options = {"retry": QUICK, "commit_interval_s": 0.01, **options}
        self.worker: Any = None
        self.code: int | None = None
        self.error: BaseException | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def consumer_settings(self) -> dict[str, Any]:
        return {
            "group_id": self.topic,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "value_deserializer": lambda data: int(data),
            "heartbeat_interval_ms": 50,
            **self.settings,
        }

    def _run(self) -> None:
        try:
            if self.kind == "sync":
                self._run_sync()
            else:
                asyncio.run(self._run_aio())
        except BaseException as error:
            self.error = error

    def _run_sync(self) -> None:
        with (
            ottla.Consumer(self.broker.bootstrap_servers, **self.consumer_settings) as consumer,
            ottla.Producer(self.broker.bootstrap_servers) as producer,
        ):
            letters = None if self.dead_topic is None else DeadLetters(producer, self.dead_topic)
            self.worker = ottla.Worker(consumer, self.topic, self.handle, dead_letters=letters, **self.options)
            self.code = self.worker.run()

    async def _run_aio(self) -> None:
        async def handle(record: ConsumerRecord) -> None:
            found = self.handle(record)
            if asyncio.iscoroutine(found):
                await found

        self.loop = asyncio.get_running_loop()
        async with (
            aio.Consumer(self.broker.bootstrap_servers, **self.consumer_settings) as consumer,
            aio.Producer(self.broker.bootstrap_servers) as producer,
        ):
            letters = None if self.dead_topic is None else DeadLetters(producer, self.dead_topic)
            self.worker = aio.Worker(consumer, self.topic, handle, dead_letters=letters, **self.options)
            self.code = await self.worker.run()

    def stop(self) -> None:
        if self.loop is None:
            self.worker.stop()
        else:
            self.loop.call_soon_threadsafe(self.worker.stop)

    def ended(self) -> int | None:
        """Its exit code, when it has ended; raises what it has raised."""
        self.thread.join(HANG_S)
        assert not self.thread.is_alive(), "the worker did not end"
        if self.error is not None:
            raise self.error
        return self.code


@pytest.fixture(params=["sync", "aio"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = request.node.name.removeprefix("test_").replace("[", "-").replace("]", "")
    broker.create_topic(name, partitions=2)
    return name


@contextmanager
def running(*args: Any, **options: Any) -> Iterator[Run]:
    run = Run(*args, **options)
    try:
        yield run
    finally:
        if run.thread.is_alive() and run.worker is not None:
            run.stop()
            run.stop()
            run.thread.join(HANG_S)


def await_true(what: str, is_true: Callable[[], Any], *runs: Run) -> None:
    deadline_s = time.monotonic() + HANG_S
    while not is_true():
        for run in runs:
            assert run.thread.is_alive(), f"the worker ended while the test waited for {what}: {run.error!r}"
        assert time.monotonic() < deadline_s, f"waited {HANG_S} s for {what}"
        time.sleep(0.005)


def committed(broker: Broker, topic: str) -> list[int]:
    found = broker.admin.list_consumer_group_offsets([topic])[topic]
    places = (found.get(TopicPartition(topic, number)) for number in range(2))
    return [0 if at is None else at.offset for at in places]


def produce(broker: Broker, topic: str, values: Any, partition: int = 0, key: str | None = None) -> None:
    for value in values:
        broker.produce(topic, str(value), partition=partition, key=key)


def test_retries_then_dead_letter_then_commit(broker: Broker, topic: str, kind: str) -> None:
    attempts: list[int] = []

    def handle(record: ConsumerRecord) -> None:
        attempts.append(record.value)
        if record.value == 1 or (record.value == 2 and attempts.count(2) < 2):
            raise LookupError(f"no {record.value}")

    produce(broker, topic, [0, 1, 2, "poison", 3])
    dead = f"{topic}.dead"
    with running(broker, kind, topic, handle, dead_topic=dead, order="partition") as run:
        await_true("everything to be committed", lambda: committed(broker, topic) == [5, 0], run)
        run.stop()
        assert run.ended() == 0
        assert run.worker.counts == (3, 3, 2)
    assert attempts == [0, 1, 1, 1, 2, 2, 3], "in order, and a record that fails holds up those behind it"
    letter, poison = broker.records(dead)
    headers = {key.removeprefix(PREFIX): value for key, value in letter.headers}
    assert letter.value == b"1"
    trace = headers.pop("exception.stacktrace")
    assert b"in handle" in trace
    assert b"LookupError: no 1" in trace
    assert int(headers.pop("timestamp")) == broker.records(topic)[1].timestamp
    assert headers == {
        "topic": topic.encode(),
        "partition": b"0",
        "offset": b"1",
        "consumer.group": topic.encode(),
        "attempts": b"3",
        "exception.class.name": b"LookupError",
        "exception.message": b"no 1",
    }
    headers = {key.removeprefix(PREFIX): value for key, value in poison.headers}
    assert poison.value == b"poison", "its raw bytes"
    assert headers["attempts"] == b"1"
    assert headers["exception.class.name"] == b"ottla.errors.DeserializationError"


def test_worker_without_dead_letters_stops_at_a_record_that_fails(broker: Broker, topic: str, kind: str) -> None:
    def handle(record: ConsumerRecord) -> None:
        if record.value == 2:
            raise LookupError("no 2")

    produce(broker, topic, range(5))
    with running(broker, kind, topic, handle) as run, pytest.raises(LookupError, match="no 2") as raised:
        run.ended()
    assert f"The worker stops at the record at offset 2 of {topic}-0" in raised.value.__notes__[0]
    assert committed(broker, topic)[0] <= 2


def test_records_are_handled_at_once_up_to_the_bound(broker: Broker, topic: str, kind: str) -> None:
    lock, most, now = threading.Lock(), 0, 0

    async def wait_a_moment() -> None:
        nonlocal now
        await asyncio.sleep(0.005)
        now -= 1

    def handle(record: ConsumerRecord) -> Any:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        if kind == "aio":
            return wait_a_moment()
        time.sleep(0.005)
        with lock:
            now -= 1
        return None

    produce(broker, topic, range(40))
    with running(broker, kind, topic, handle, concurrency=4, queue_size=8) as run:
        await_true("everything to be committed", lambda: committed(broker, topic) == [40, 0], run)
        assert run.worker._core.queue.size == 0
    assert 1 < most <= 4


@pytest.mark.slow
def test_blocked_handler_keeps_its_member_in_the_group(broker: Broker, topic: str, kind: str) -> None:
    """Handlers take longer than max.poll.interval.ms; the worker polls all the while, with its partitions paused."""
    seen: list[int] = []
    release = threading.Event()

    async def wait() -> None:
        while not release.is_set():
            await asyncio.sleep(0.01)

    def handle(record: ConsumerRecord) -> Any:
        seen.append(record.value)
        if kind == "aio":
            return wait()
        release.wait(HANG_S)
        return None

    produce(broker, topic, range(30))
    settings = {"max_poll_interval_ms": 300, "session_timeout_ms": 6000}
    with running(broker, kind, topic, handle, queue_size=4, settings=settings) as run:
        await_true("the first record", lambda: seen, run)
        time.sleep(1.0)  # time for the member to be thrown out, if nothing polled
        assert run.worker._core.queue.size <= 4
        release.set()
        await_true("everything to be committed", lambda: committed(broker, topic) == [30, 0], run)
    assert seen == list(range(30)), "no record twice: the member was never thrown out"


def test_stop_finishes_what_is_in_process_and_starts_nothing(broker: Broker, topic: str, kind: str) -> None:
    seen: list[int] = []
    release = threading.Event()

    async def wait() -> None:
        while not release.is_set():
            await asyncio.sleep(0.01)

    def handle(record: ConsumerRecord) -> Any:
        seen.append(record.value)
        return wait() if kind == "aio" else release.wait(HANG_S) and None

    produce(broker, topic, range(5))
    with running(broker, kind, topic, handle, order="partition") as run:
        await_true("the first record", lambda: seen, run)
        run.stop()
        release.set()
        assert run.ended() == 0
    assert seen == [0]
    assert committed(broker, topic) == [1, 0]


def test_second_stop_leaves_what_is_in_process_uncommitted(broker: Broker, topic: str, kind: str) -> None:
    seen: list[int] = []
    release = threading.Event()

    def handle(record: ConsumerRecord) -> Any:
        seen.append(record.value)
        if record.value == 0:
            return None
        return asyncio.sleep(HANG_S) if kind == "aio" else release.wait(HANG_S) and None

    produce(broker, topic, range(5))
    with running(broker, kind, topic, handle, order="partition") as run:
        await_true("the second record", lambda: len(seen) == 2, run)
        run.stop()
        run.stop()
        assert run.ended() == 1
        release.set()
    assert committed(broker, topic) == [1, 0]


@pytest.mark.slow
def test_partition_is_handed_over_after_its_record_is_finished(broker: Broker, topic: str, kind: str) -> None:
    seen: list[tuple[str, int]] = []
    started, release = threading.Event(), threading.Event()

    async def wait() -> None:
        while not release.is_set():
            await asyncio.sleep(0.01)

    def first(record: ConsumerRecord) -> Any:
        seen.append(("first", record.value))
        started.set()
        return wait() if kind == "aio" else release.wait(HANG_S) and None

    def second(record: ConsumerRecord) -> None:
        seen.append(("second", record.value))

    produce(broker, topic, range(10), partition=0)
    produce(broker, topic, range(10, 20), partition=1)
    options = {"order": "partition", "concurrency": 2}
    with running(broker, kind, topic, first, **options) as one:
        assert started.wait(HANG_S)
        await_true("both partitions to be in process", lambda: len(seen) == 2)
        with running(broker, kind, topic, second, **options) as other:
            await_true("the second worker to join", lambda: other.worker is not None)
            time.sleep(0.3)
            assert len(seen) == 2, "the second one waits for the records in process"
            release.set()
            await_true("everything to be committed", lambda: committed(broker, topic) == [10, 10], one, other)
            other.stop()
            assert other.ended() == 0
        one.stop()
        assert one.ended() == 0
    assert sorted(value for _, value in seen) == list(range(20)), "none is lost, and none handled twice"


class Filter:
    """Leaves odd numbers out."""

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        return [record for record in records if record.value % 2 == 0]


def test_record_that_an_interceptor_leaves_out_counts_as_handled(broker: Broker, topic: str) -> None:
    seen: list[int] = []
    produce(broker, topic, range(4))
    settings = {"interceptors": [Filter()]}
    with running(broker, "sync", topic, lambda record: seen.append(record.value), settings=settings) as run:
        await_true("everything to be committed", lambda: committed(broker, topic) == [4, 0], run)
    assert sorted(seen) == [0, 2]


def test_consumer_that_commits_automatically_is_refused(broker: Broker) -> None:
    with (
        ottla.Consumer(broker.bootstrap_servers, group_id="g") as consumer,
        pytest.raises(ConfigError, match="make it with enable_auto_commit=False"),
    ):
        ottla.Worker(consumer, "t", print)


def test_producer_that_changes_dead_letters_is_refused(broker: Broker) -> None:
    address = broker.bootstrap_servers
    with ottla.Consumer(address, group_id="g", enable_auto_commit=False) as consumer:
        for settings, text in (({"value_serializer": "json"}, "has a value_serializer"), ({"acks": 0}, "has acks=0")):
            with ottla.Producer(address, **settings) as producer, pytest.raises(ConfigError, match=text):
                ottla.Worker(consumer, "t", print, dead_letters=DeadLetters(producer, "t.dead"))
        with pytest.raises(TypeError, match=r"use ottla\.aio\.Worker"):
            ottla.Worker(consumer, "t", asyncio.sleep)


def test_waits_double_up_to_a_limit_with_jitter() -> None:
    retry = Retry(attempts=9, backoff_s=1.0, backoff_s_max=5.0, jitter=0.5)
    error = ValueError()
    assert [retry.wait_s(attempt, error, 0.5) for attempt in (1, 2, 3, 4, 8)] == [1, 2, 4, 5, 5]
    assert (retry.wait_s(1, error, 0.0), retry.wait_s(1, error, 1.0)) == (0.5, 1.5)
    assert retry.wait_s(9, error, 0.5) is None
    assert Retry(on=lambda error: "again" in str(error)).wait_s(1, ValueError("not this"), 0.5) is None
