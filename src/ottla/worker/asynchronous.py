"""`Worker` for asyncio: a consume loop with handlers in tasks, all on one event loop.

The task that runs `run` owns the consumer: it polls, pauses, commits and meets rebalances. Handlers are tasks of their own,
started whenever a record is ready and fewer than `concurrency` run.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Generic

from ottla.client.consumer.asynchronous import Consumer
from ottla.client.consumer.record import ConsumerRecord
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
    stopping_loop_on_signals,
)
from ottla.worker.queue import Order, Work


class Worker(Generic[K, V]):
    """Handles the records of topics with a coroutine function, each at least once, until it is told to stop.

    worker = aio.Worker(consumer, "orders", handle, concurrency=100, dead_letters=DeadLetters(producer, "orders.dead"))
    code = await worker.run()
    """

    def __init__(
        self,
        consumer: Consumer[K, V],
        topics: Any,
        handler: Callable[[ConsumerRecord[K, V]], Awaitable[Any]],
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

        `concurrency` handlers run at a time, each in a task. `order`: records with the same key, or of the same partition,
        are handled one after the other; `none`: in any order. At most `queue_size` records are taken from the consumer and
        not finished; then partitions are paused. `grace_s`: how long handlers may take to finish when the worker stops or a
        partition is revoked; then they are cancelled.
        """
        check_letters(dead_letters)
        self._handler = checked_handler(handler, is_async=True)
        options = Options(retry or Retry(), dead_letters, concurrency, grace_s, commit_interval_s)
        self._core = WorkerCore(consumer, options, order, queue_size)
        self._consumer = consumer
        self._topics = topics
        self._tasks: dict[asyncio.Task[None], Work] = {}
        self._progress = asyncio.Event()
        """Set whenever a handler has ended or `stop` was called."""
        self._timer: asyncio.TimerHandle | None = None
        self._stops = 0
        self._is_over = False

    @property
    def counts(self) -> Counts:
        """What the worker has done since it was made."""
        return self._core.counts

    def stop(self) -> None:
        """Stop: finish what is in process, commit, and return from `run`. Called again, cancel what is in process."""
        self._stops += 1
        self._core.queue.close()
        self._progress.set()

    async def run(self, *, signals: bool = True) -> int:
        """Handle records until `stop` is called, or SIGTERM or SIGINT comes (with `signals`, in the main thread).

        Returns 0 if everything that was in process is finished and committed, and 1 if handlers had to be cancelled after the
        grace period: their records are handled again by the next reader. Raises what keeps the worker from going on, among
        it the error of a record that cannot become a dead letter. The consumer stays open: closing it leaves the group.
        """
        if signals:
            with stopping_loop_on_signals(self.stop):
                return await self._run()
        return await self._run()

    async def _run(self) -> int:
        core, consumer = self._core, self._consumer
        core.open = consumer._core.reader.hand_out_raw()
        consumer.subscribe(self._topics, on_assigned=self._on_assigned, on_revoked=self._on_revoked, on_lost=self._on_lost)
        try:
            try:
                while not self._stops and core.failure is None:
                    await self._poll_once()
            except Exception as error:
                core.failure = core.failure or error
            is_finished = await self._finish()
        finally:
            self._is_over = True
            core.queue.close()
            if self._timer is not None:
                self._timer.cancel()
            await self._cancel(list(self._tasks))
        if core.failure is not None:
            raise core.failure
        return STOPPED if is_finished else UNFINISHED

    # The task that polls

    async def _poll_once(self) -> None:
        core, queue, consumer = self._core, self._core.queue, self._consumer
        offsets = core.due_commit(asyncio.get_running_loop().time())
        if offsets:
            consumer.commit_async(offsets, core.commit_ended)
        to_pause, to_resume = core.pauses()
        if to_pause:
            consumer.pause(to_pause)
        if to_resume:
            consumer.resume(to_resume)
        if core.paused and core.paused >= queue.partitions:
            size = queue.size
            await self._wait(lambda: queue.size <= size // 2, POLL_S_PAUSED)
            timeout = 0.0
        else:
            timeout = POLL_S_PAUSED if core.paused else POLL_S
        try:
            records = await consumer.poll(timeout, max_records=max(1, queue.room))
        except WakeupError:
            return
        queue.add(records)
        self._start_tasks()

    async def _wait(self, is_enough: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `is_enough` holds after a handler has ended; False after `timeout_s`, or when `stop` is called."""
        stops = self._stops
        try:
            async with asyncio.timeout(timeout_s):
                while not is_enough() and self._stops == stops:
                    self._progress.clear()
                    await self._progress.wait()
        except TimeoutError:
            pass
        return is_enough()

    async def _drain(self, count: Callable[[], int]) -> bool:
        """Wait until `count` is 0; False after the grace period, or if `stop` is repeated."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._core.options.grace_s
        while count() and self._stops <= 1 and (left_s := deadline_s - loop.time()) > 0:
            await self._wait(lambda: count() == 0, left_s)
        return count() == 0

    async def _finish(self) -> bool:
        """Start nothing more, let handlers finish and commit; whether all have finished."""
        core, queue, consumer = self._core, self._core.queue, self._consumer
        queue.close()
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + core.options.grace_s
        if queue.in_process:
            consumer.pause(consumer.assignment())
        while queue.in_process and self._stops <= 1 and (left_s := deadline_s - loop.time()) > 0:
            try:
                await consumer.poll(0, max_records=1)  # stay in the group; whatever comes of new partitions is left
            except Exception as error:
                logger.debug("a poll while the worker stops: %r", error)
            await self._wait(lambda: queue.in_process == 0, min(left_s, POLL_S))
        unfinished = queue.in_process
        offsets = queue.committable()
        await self._commit_last(offsets)
        if unfinished:
            logger.warning(
                "%d records were still in process after the grace period of %g s: they are not committed, and their next "
                "reader handles them again",
                unfinished,
                core.options.grace_s,
            )
        return not unfinished

    async def _commit_last(self, offsets: Any) -> None:
        if not offsets:
            return
        try:
            await self._consumer.commit(offsets, timeout=COMMIT_S_MAX)
        except KafkaError as error:
            logger.warning("the last commit failed, so the next reader handles some records again: %s", error)
        else:
            self._core.queue.committed(offsets)

    # Rebalances, inside of poll

    def _on_assigned(self, partitions: set[TopicPartition]) -> None:
        self._core.assigned(partitions)

    async def _on_revoked(self, partitions: set[TopicPartition]) -> None:
        queue = self._core.queue
        if not self._is_over:
            queue.halt(partitions)
            await self._drain(lambda: queue.in_process_of(partitions))
            await self._commit_last(queue.committable(partitions))
        await self._on_lost(partitions)

    async def _on_lost(self, partitions: set[TopicPartition]) -> None:
        self._core.dropped(partitions)
        # Their results count no more, and another member may handle the same records now.
        await self._cancel([task for task, work in self._tasks.items() if work.is_dropped])
        self._start_tasks()

    # Handlers

    def _start_tasks(self) -> None:
        """Start handlers for the records that are ready, and look again when the next retry is due."""
        core, loop = self._core, asyncio.get_running_loop()
        while len(self._tasks) < core.options.concurrency and (work := core.queue.take(loop.time())) is not None:
            task = loop.create_task(self._handle(work))
            self._tasks[task] = work
            task.add_done_callback(self._ended)
        if self._timer is not None:
            self._timer.cancel()
        due_s = core.queue.next_retry_s() if len(self._tasks) < core.options.concurrency else None
        self._timer = None if due_s is None else loop.call_at(due_s, self._start_tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        work = self._tasks.pop(task)
        if task.cancelled():
            if not self._is_over and not work.is_dropped:
                self._core.fail(work, RuntimeError("the handler was cancelled, and not by its worker"))
        elif (error := task.exception()) is not None:
            self._core.fail(work, error)
        self._progress.set()
        if not self._is_over:
            self._start_tasks()

    async def _cancel(self, tasks: list[asyncio.Task[None]]) -> None:
        for each in tasks:
            each.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._core.options.grace_s)  # a handler may refuse to be cancelled

    async def _handle(self, work: Work) -> None:
        core = self._core
        try:
            record = core.open(work.record)
            if record is not None:
                await self._handler(record)
        except Exception as error:
            wait_s = core.wait_s(work, error, random.random())
            if wait_s is None:
                await self._give_up(work, error)
            else:
                core.retry(work, error, asyncio.get_running_loop().time() + wait_s)
        else:
            core.handled += not work.is_dropped
            core.queue.finish(work)

    async def _give_up(self, work: Work, error: Exception) -> None:
        """Make a record a dead letter; it is finished when that is acknowledged."""
        core, letters = self._core, self._core.options.dead_letters
        if work.is_dropped:
            return
        try:
            if letters is None:
                raise error
            topic, headers = core.letter(letters, work, error)
            await (await letters.producer.send(topic, work.record.value, work.record.key, headers=headers))
        except Exception as problem:
            core.fail(work, problem)
        else:
            core.dead_lettered += not work.is_dropped
            core.queue.finish(work)
