"""`WorkerCore`: what the two workers share: their options, what becomes of a failure, and when they pause and commit.

It does no IO. The workers call it where their handlers and their consumer run, and lock where those are threads.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ottla.client.consumer.record import ConsumerRecord
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import ConfigError, DeserializationError, KafkaError
from ottla.ids import TopicPartition
from ottla.worker.queue import ORDERS, Order, Work, WorkQueue

logger = logging.getLogger("ottla.worker")

# Dead letters: records that could not be handled, as they are sent to another topic. Headers say where each came from and
# why.
#
# The headers have the names that Kafka Connect gives them, so that its tools read them too. Connect has none for the
# timestamp: its dead letters keep the record's. Ours have the time of the failure, because retention could delete the letter
# of an old record at once.

PREFIX: Final = "__connect.errors."
_TEXT_CHARS_MAX: Final = 1_000
_TRACE_CHARS_MAX: Final = 8_000
"""The beginning of a long text and the end of a long trace are kept: letters must not grow beyond what a topic takes."""

Headers = list[tuple[str, bytes | None]]


class DeadLetters(NamedTuple):
    """Where records go that could not be handled: the topic, and the producer (of bytes) that sends them there."""

    producer: Any
    """`ottla.Producer` for `ottla.Worker`, `aio.Producer` for `aio.Worker`, without serializers."""
    topic: str | Callable[[ConsumerRecord[Any, Any]], str]
    """The name, or a function that returns it for a record with raw key and value."""

    def topic_for(self, record: ConsumerRecord[Any, Any]) -> str:
        """The topic of a record's letter."""
        return self.topic if isinstance(self.topic, str) else self.topic(record)


def headers_of(record: ConsumerRecord[Any, Any], error: BaseException, attempts: int, group_id: str | None) -> Headers:
    """The headers of a record's letter: its own, without those of an earlier letter, and what happened."""
    shown = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "consumer.group": group_id or "",
        "attempts": attempts,
        "exception.class.name": _class_name(error),
        "exception.message": str(error)[:_TEXT_CHARS_MAX],
        "exception.stacktrace": "".join(traceback.format_exception(error))[-_TRACE_CHARS_MAX:],
    }
    kept = [(key, value) for key, value in record.headers if not key.startswith(PREFIX)]
    return kept + [(PREFIX + name, str(value).encode(errors="backslashreplace")) for name, value in shown.items()]


def _class_name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


# `Retry`: how often a worker calls its handler for a record, and how long it waits between two attempts. Pure.

_EXPONENT_MAX = 60  # any sensible limit is reached before


@dataclass(frozen=True)
class Retry:
    """The attempts that each record gets. After the last one it is a dead letter, or the worker stops if it has none."""

    attempts: int = 3
    """How often the handler is called for a record, the first time included."""
    backoff_s: float = 1.0
    """The wait after the first failure. It doubles with each failure after that."""
    backoff_s_max: float = 30.0
    """No wait is longer, but for its part of chance."""
    jitter: float = 0.2
    """The part of a wait that is left to chance, so that records which failed together are not retried together."""
    on: type[BaseException] | tuple[type[BaseException], ...] | Callable[[Exception], bool] = Exception
    """Which errors are worth another attempt: classes, or a function of the error. Others are final at once."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts={self.attempts}: a record gets at least one attempt, which is no retry")
        if self.backoff_s < 0 or self.backoff_s_max < 0:
            raise ValueError("backoff_s and backoff_s_max are seconds, 0 or more")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter={self.jitter}: it is a part of the wait, from 0 to 1")

    def wait_s(self, attempts: int, error: Exception, chance: float) -> float | None:
        """The seconds until the next attempt, after this many; None if there is none. `chance` is from 0 to 1."""
        if attempts >= self.attempts or not self._is_worth_it(error):
            return None
        wait_s = min(self.backoff_s * 2.0 ** min(attempts - 1, _EXPONENT_MAX), self.backoff_s_max)
        return wait_s * (1 + self.jitter * (2 * chance - 1))

    def _is_worth_it(self, error: Exception) -> bool:
        if isinstance(self.on, type | tuple):
            return isinstance(error, self.on)
        return bool(self.on(error))


POLL_S: Final = 0.25
"""How long a poll waits for records: a worker that is told to stop notices it after that at the latest."""
POLL_S_PAUSED: Final = 0.02
"""The same while partitions are paused: they may have room again."""
COMMIT_S_MAX: Final = 10.0
"""How long the last commit of a partition may take."""

STOPPED, UNFINISHED = 0, 1
"""What `run` returns: the worker has stopped; handlers were still at work when the grace period ended."""


class Options(NamedTuple):
    """What a worker was made with."""

    retry: Retry
    dead_letters: DeadLetters | None
    concurrency: int
    grace_s: float
    commit_interval_s: float


class Counts(NamedTuple):
    """What a worker has done since it was made."""

    handled: int
    """Records that the handler dealt with."""
    retried: int
    """Attempts that failed and were made again."""
    dead_lettered: int


class WorkerCore:
    """The state of one worker."""

    def __init__(self, consumer: Any, options: Options, order: Order, queue_size: int) -> None:
        if order not in ORDERS:
            raise ValueError(f"order={order!r}: it is one of {', '.join(ORDERS)}")
        if options.concurrency < 1:
            raise ValueError(f"concurrency={options.concurrency}: at least one record is handled at a time")
        if queue_size < options.concurrency:
            raise ValueError(f"queue_size={queue_size}: it must hold at least the {options.concurrency} records in process")
        if consumer._options.settings.enable_auto_commit:
            raise ConfigError(
                "the worker's consumer commits automatically, also what is not handled yet: make it with "
                "enable_auto_commit=False",
                setting="enable.auto.commit",
            )
        self.options = options
        self.queue = WorkQueue(order, queue_size)
        self.group_id: str | None = consumer._options.settings.group_id
        self.open: Callable[[ConsumerRecord[Any, Any]], ConsumerRecord[Any, Any] | None] = lambda record: record
        """Turns a record with raw key and value into the one for the handler; None if an interceptor left it out."""
        self.paused: set[TopicPartition] = set()
        self.failure: BaseException | None = None
        """Why the worker stops by itself."""
        self.is_committing = False
        self.next_commit_s = 0.0
        self.handled = self.retried = self.dead_lettered = 0

    # Failures

    def wait_s(self, work: Work, error: Exception, chance: float) -> float | None:
        """The seconds until a record that failed is handled again; None if it is not."""
        cause: Exception = error
        if isinstance(error, DeserializationError):
            # The same bytes give the same error. Only a deserializer that asks a server may have more luck later.
            if not isinstance(error.__cause__, OSError):
                return None
            cause = error.__cause__
        try:
            return self.options.retry.wait_s(work.attempts, cause, chance)
        except Exception:
            logger.exception("Retry(on=...) raised, so %s gets no other attempt", place(work.record))
            return None

    def retry(self, work: Work, error: Exception, due_s: float) -> None:
        """Handle a record again at `due_s`."""
        if not work.is_dropped:
            self.retried += 1
            logger.info("attempt %d at %s failed and is made again: %r", work.attempts, place(work.record), error)
        self.queue.retry(work, due_s)

    def letter(self, letters: DeadLetters, work: Work, error: Exception) -> tuple[str, Headers]:
        """The topic and the headers of a record's dead letter."""
        headers = headers_of(work.record, error, work.attempts, self.group_id)
        topic = letters.topic_for(work.record)
        logger.warning("%s goes to %s after attempt %d: %r", place(work.record), topic, work.attempts, error)
        return topic, headers

    def fail(self, work: Work, error: BaseException) -> None:
        """The worker must stop: a record can neither be handled nor become a dead letter. It stays uncommitted."""
        if not work.is_dropped:
            self.queue.close()
            if self.failure is None:
                advice = (
                    "" if self.options.dead_letters is not None else ". Give the worker dead_letters, and it goes on instead"
                )
                error.add_note(f"The worker stops at {place(work.record)}, which is not committed{advice}.")
                self.failure = error
        self.queue.retry(work, 0.0)  # it is with no handler any more

    # Between two polls

    def pauses(self) -> tuple[set[TopicPartition], set[TopicPartition]]:
        """The partitions to pause and those to resume now."""
        full = self.queue.full()
        changes = full - self.paused, self.paused - full
        self.paused = full
        return changes

    def due_commit(self, now_s: float) -> dict[TopicPartition, OffsetAndMetadata]:
        """What to commit now; nothing while a commit is under way or was made a moment ago."""
        if self.is_committing or now_s < self.next_commit_s:
            return {}
        offsets = self.queue.committable()
        if offsets:
            self.is_committing = True
            self.next_commit_s = now_s + self.options.commit_interval_s
        return offsets

    def commit_ended(self, offsets: Any, error: KafkaError | None) -> None:
        """A commit between two polls has ended."""
        self.is_committing = False
        if error is None:
            self.queue.committed(offsets)
        else:
            logger.warning("a commit failed, and is made again with the next one: %s", error)

    def dropped(self, partitions: set[TopicPartition]) -> None:
        """These partitions are gone."""
        self.queue.drop(partitions)
        self.paused -= partitions

    def assigned(self, partitions: set[TopicPartition]) -> None:
        """These partitions were added; the consumer has them unpaused."""
        self.queue.assign(partitions)
        self.paused -= partitions

    @property
    def counts(self) -> Counts:
        return Counts(self.handled, self.retried, self.dead_lettered)


def place(record: ConsumerRecord[Any, Any]) -> str:
    """Where a record lies, for people."""
    return f"the record at offset {record.offset} of {record.topic}-{record.partition}"


def checked_handler(handler: Any, *, is_async: bool) -> Any:
    """The handler, if it is of the worker's kind."""
    if not callable(handler):
        raise TypeError(f"a handler is a function of a record, not {handler!r}")
    call = handler if inspect.isroutine(handler) else getattr(handler, "__call__", handler)  # noqa: B004 - its method
    if inspect.iscoroutinefunction(call) and not is_async:
        raise TypeError("the handler is a coroutine function: use ottla.aio.Worker, or write a plain function")
    return handler


def check_letters(letters: DeadLetters | None) -> None:
    """Raise if the dead letters' producer would change their bytes."""
    if letters is None:
        return
    producer = letters.producer
    settings = producer._settings if hasattr(producer, "_settings") else producer._core.settings
    if settings.acks == 0:
        raise ConfigError(
            "the producer of dead letters has acks=0, and a letter must be acknowledged: use acks=all", setting="acks"
        )
    for part in ("key", "value"):
        if getattr(settings, f"{part}_serializer") not in ("bytes", None):
            raise ConfigError(
                f"the producer of dead letters has a {part}_serializer, and letters are bytes: give them a producer without",
                setting=f"{part}.serializer",
            )


# `StopSignals`: SIGTERM and SIGINT stop a worker instead of its process; a second one ends its grace period.

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopping_on_signals(stop: Callable[[], Any]) -> Iterator[None]:
    """Call `stop`, in the main thread, at each signal. Another thread than the main one cannot handle signals: it does not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, lambda number, frame: stop()) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler if handler is not None else signal.SIG_DFL)


@contextmanager
def stopping_loop_on_signals(stop: Callable[[], Any]) -> Iterator[None]:
    """Call `stop`, on the running loop, at each signal, if the loop runs in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {each: signal.getsignal(each) for each in SIGNALS}
    for each in SIGNALS:
        loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            loop.remove_signal_handler(each)
            signal.signal(each, handler if handler is not None else signal.SIG_DFL)
