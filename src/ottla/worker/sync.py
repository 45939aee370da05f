"""`Worker`: a consume loop with handlers in threads.

The thread that calls `run` owns the consumer: it polls, pauses, commits and meets rebalances, so it is never busy for long and
the member stays in its group. The handlers' threads take records from the queue by themselves. Queue and core are shared under
one lock. The threads are daemons: a handler that hangs does not keep the process alive after its grace period.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any, Generic

from ottla.client.consumer.record import ConsumerRecord
from ottla.client.consumer.sync import Consumer
from ottla.client.type_parameters import K, V
from ottla.errors import KafkaError, WakeupError
from ottla.ids import TopicPartition
from ottla.worker.core import (
    COMMIT_S_MAX,
    POLL_S,
    POLL_S_PAUSED,
    STOPPED,
    UNFINISHED,
    Counts,
    DeadLetters,
    Options,
    Retry,
    WorkerCore,
    check_letters,
    checked_handler,
    logger,
    stopping_on_signals,
)
from ottla.worker.queue import Order, Work


class Worker(Generic[K, V]):
    """Handles the records of topics, each at least once, until it is told to stop.

    worker = Worker(consumer, "orders", handle, retry=Retry(attempts=5), dead_letters=DeadLetters(producer, "orders.dead"))
    sys.exit(worker.run())
    """

    def __init__(
        self,
        consumer: Consumer[K, V],
        topics: Any,
        handler: Callable[[ConsumerRecord[K, V]], Any],
        *,
        retry: Retry | None = None,
        dead_letters: DeadLetters | None = None,
        concurrency: int = 1,
        order: Order = "key",
        queue_size: int = 1000,
        grace_s: float = 30.0,
        commit_interval_s: float = 1.0,
    ) -> None:
        """`topics` are subscribed to by `run`, as by `Consumer.subscribe`. The consumer must not commit automatically.

        `concurrency` handlers run at a time, each in a thread. `order`: records with the same key, or of the same partition,
        are handled one after the other; `none`: in any order. At most `queue_size` records are taken from the consumer and
        not finished; then partitions are paused. `grace_s`: how long handlers may take to finish when the worker stops or a
        partition is revoked.
        """
        check_letters(dead_letters)
        self._handler = checked_handler(handler, is_async=False)
        options = Options(retry or Retry(), dead_letters, concurrency, grace_s, commit_interval_s)
        self._core = WorkerCore(consumer, options, order, queue_size)
        self._consumer = consumer
        self._topics = topics
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        """Handlers' threads wait for records."""
        self._progress = threading.Condition(self._lock)
        """The thread that polls waits until `_is_enough` holds."""
        self._is_enough: Callable[[], bool] | None = None
        self._stops = 0
        """How often `stop` was called: the second call ends the grace period."""
        self._is_over = False

    @property
    def counts(self) -> Counts:
        """What the worker has done since it was made."""
        return self._core.counts

    def stop(self) -> None:
        """Stop: finish what is in process, commit, and return from `run`. Called again, do not wait for handlers any longer.

        May be called from handlers, other threads and signal handlers.
        """
        self._stops += 1  # no lock: a signal handler may interrupt the thread that holds it

    def run(self, *, signals: bool = True) -> int:
        """Handle records until `stop` is called, or SIGTERM or SIGINT comes (with `signals`, in the main thread).

        Returns 0 if everything that was in process is finished and committed, and 1 if handlers were still at work after the
        grace period: their records are handled again by the next reader. Raises what keeps the worker from going on, among
        it the error of a record that cannot become a dead letter. The consumer stays open: closing it leaves the group.
        """
        if signals:
            with stopping_on_signals(self.stop):
                return self._run()
        return self._run()

    def _run(self) -> int:
        core, consumer = self._core, self._consumer
        core.open = consumer._core.reader.hand_out_raw()
        consumer.subscribe(self._topics, on_assigned=self._on_assigned, on_revoked=self._on_revoked, on_lost=self._on_lost)
        threads = [
            threading.Thread(target=self._handle_all, name=f"ottla-worker-{number}", daemon=True)
            for number in range(core.options.concurrency)
        ]
        for each in threads:
            each.start()
        try:
            try:
                while not self._stops and core.failure is None:
                    self._poll_once()
            except Exception as error:
                core.failure = core.failure or error
            is_finished = self._finish()
        finally:
            with self._lock:
                self._is_over = True
                core.queue.close()
                self._work.notify_all()
        if core.failure is not None:
            raise core.failure
        for each in threads if is_finished else ():
            each.join()
        return STOPPED if is_finished else UNFINISHED

    # The thread that polls

    def _poll_once(self) -> None:
        core, queue, consumer = self._core, self._core.queue, self._consumer
        with self._lock:
            offsets = core.due_commit(time.monotonic())
            to_pause, to_resume = core.pauses()
            room, all_paused = queue.room, len(core.paused) > 0 and core.paused >= queue.partitions
            size = queue.size
        if offsets:
            consumer.commit_async(offsets, self._commit_ended)
        if to_pause:
            consumer.pause(to_pause)
        if to_resume:
            consumer.resume(to_resume)
        if all_paused:
            self._wait(lambda: queue.size <= size // 2, POLL_S_PAUSED)
            timeout = 0.0
        else:
            timeout = POLL_S_PAUSED if core.paused else POLL_S
        try:
            records = consumer.poll(timeout, max_records=max(1, room))
        except WakeupError:
            return
        if records:
            with self._lock:
                queue.add(records)
                self._work.notify(len(records))

    def _commit_ended(self, offsets: Any, error: KafkaError | None) -> None:
        with self._lock:
            self._core.commit_ended(offsets, error)

    def _wait(self, is_enough: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `is_enough`, which is asked under the lock, holds after a handler has ended."""
        with self._lock:
            self._is_enough = is_enough
            try:
                return self._progress.wait_for(is_enough, timeout_s)
            finally:
                self._is_enough = None

    def _drain(self, count: Callable[[], int]) -> bool:
        """Wait until `count` handlers, which is then 0, have ended; False after the grace period, or if `stop` is repeated."""
        deadline_s = time.monotonic() + self._core.options.grace_s
        while not self._wait(lambda: count() == 0, POLL_S):
            if time.monotonic() >= deadline_s or self._stops > 1:
                return False
        return True

    def _finish(self) -> bool:
        """Start nothing more, let handlers finish and commit; whether all have finished."""
        core, queue, consumer = self._core, self._core.queue, self._consumer
        with self._lock:
            queue.close()
        deadline_s = time.monotonic() + core.options.grace_s
        with self._lock:
            core.pauses()
            is_idle = queue.in_process == 0
        if not is_idle:
            consumer.pause(consumer.assignment())
        while not is_idle and time.monotonic() < deadline_s and self._stops <= 1:
            try:
                consumer.poll(0, max_records=1)  # stay in the group; whatever comes of new partitions is left
            except Exception as error:
                logger.debug("a poll while the worker stops: %r", error)
            is_idle = self._wait(lambda: queue.in_process == 0, POLL_S)
        with self._lock:
            offsets = queue.committable()
            unfinished = queue.in_process
        self._commit_last(offsets)
        if unfinished:
            logger.warning(
                "%d records were still in process after the grace period of %g s: they are not committed, and their next "
                "reader handles them again",
                unfinished,
                core.options.grace_s,
            )
        return not unfinished

    def _commit_last(self, offsets: Any) -> None:
        if not offsets:
            return
        try:
            self._consumer.commit(offsets, timeout=COMMIT_S_MAX)
        except KafkaError as error:
            logger.warning("the last commit failed, so the next reader handles some records again: %s", error)
        else:
            with self._lock:
                self._core.queue.committed(offsets)

    # Rebalances, inside of poll

    def _on_assigned(self, partitions: set[TopicPartition]) -> None:
        with self._lock:
            self._core.assigned(partitions)

    def _on_revoked(self, partitions: set[TopicPartition]) -> None:
        queue = self._core.queue
        if not self._is_over:
            with self._lock:
                queue.halt(partitions)
            self._drain(lambda: queue.in_process_of(partitions))
            with self._lock:
                offsets = queue.committable(partitions)
            self._commit_last(offsets)
        self._on_lost(partitions)

    def _on_lost(self, partitions: set[TopicPartition]) -> None:
        with self._lock:
            self._core.dropped(partitions)

    # The handlers' threads

    def _handle_all(self) -> None:
        while True:
            with self._lock:
                work = self._next_work()
            if work is None:
                return
            self._handle(work)

    def _next_work(self) -> Work | None:
        """Wait for the next record, with the lock held; None when the worker is over."""
        queue = self._core.queue
        while not self._is_over:
            now_s = time.monotonic()
            work = None if self._stops else queue.take(now_s)
            if work is not None:
                return work
            due_s = queue.next_retry_s()
            self._work.wait(None if due_s is None else max(0.0, due_s - now_s))
        return None

    def _handle(self, work: Work) -> None:
        core = self._core
        try:
            record = core.open(work.record)
            if record is not None:
                self._handler(record)
        except Exception as error:
            wait_s = core.wait_s(work, error, random.random())
            if wait_s is None:
                self._give_up(work, error)
                return
            with self._lock:
                core.retry(work, error, time.monotonic() + wait_s)
                self._work.notify()  # maybe nobody waits for that time yet
                self._tell()
        except BaseException as error:
            with self._lock:
                core.fail(work, error)
                self._tell()
        else:
            with self._lock:
                core.handled += not work.is_dropped
                core.queue.finish(work)
                self._tell()

    def _give_up(self, work: Work, error: Exception) -> None:
        """Make a record a dead letter; it is finished when that is acknowledged."""
        core, letters = self._core, self._core.options.dead_letters
        if work.is_dropped:
            return
        try:
            if letters is None:
                raise error
            topic, headers = core.letter(letters, work, error)
            key, value = work.record.key, work.record.value
            letters.producer.send(topic, value, key, headers=headers).result()
        except BaseException as problem:
            with self._lock:
                core.fail(work, problem)
                self._tell()
        else:
            with self._lock:
                core.dead_lettered += not work.is_dropped
                core.queue.finish(work)
                self._tell()

    def _tell(self) -> None:
        """A handler has ended; the lock is held."""
        if self._is_enough is not None and self._is_enough():
            self._progress.notify()
