"""`OffsetCalls`: the calls of a consumer that look offsets up and commit them, on the loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ottla.client.consumer.parts import Parts
from ottla.client.consumer.reader import RecordReader
from ottla.client.consumer.wait import Waiting
from ottla.client_core.consumer.commits import Commit, Commits, not_committed
from ottla.client_core.consumer.offset_lister import OffsetAndTimestamp
from ottla.client_core.consumer.settings import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ottla.client_core.consumer.subscription import PartitionState
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.config.client import ConsumerSettings
from ottla.errors import InvalidGroupIdError, KafkaError, WakeupError
from ottla.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.interceptors import ConsumerInterceptors

logger = logging.getLogger("ottla.client")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback = Callable[[Offsets, KafkaError | None], object]
Mark = tuple[PartitionState, int]
"""The generation of a partition's position: another one after a jump, and another state after a new assignment."""
Marks = Mapping[TopicPartition, Mark]


class OffsetCalls:
    """Offsets of one consumer."""

    def __init__(self, settings: ConsumerSettings, parts: Parts, reader: RecordReader, waiting: Waiting) -> None:
        self._settings = settings
        self._parts = parts
        self._reader = reader
        self._waiting = waiting
        self._unfinished: list[tuple[Commit, CommitCallback, Marks]] = []
        self.callbacks: list[Callable[[], object]] = []
        """Callbacks of asynchronous commits that are due; a face calls them where its caller is."""
        self._stored: dict[TopicPartition, tuple[OffsetAndMetadata, Mark]] = {}
        """What this consumer has committed last. It counts until the position jumps: offsets may be reset meanwhile."""
        self._automatic: Commit | None = None
        self.lost: Callable[[], Mapping[TopicPartition, str]] = dict
        """The partitions that the group has taken away, before a poll could say so, and why."""
        self.interceptors: ConsumerInterceptors | None = None

    def look(self) -> None:
        """After a round of the machines: find the commits that have ended."""
        for entry in [each for each in self._unfinished if each[0].is_done]:
            self._unfinished.remove(entry)
            commit, callback, marks = entry
            self._note(commit, marks)
            self.callbacks.append(partial(callback, commit.offsets, commit.error))

    # Looking up

    async def by_time(
        self, timestamps: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The offsets of partitions by time, at the leaders."""
        metadata, topics = self._parts.metadata, {each.topic for each in timestamps}
        metadata.borrow(topics)  # a group's leader may want topics of other members
        query = self._parts.lister.ask(timestamps)
        try:
            await self._waiting.done(
                lambda: query.is_done or bool(query.errors),
                timeout_s,
                "the offsets were not found",
                lambda: query.retried or metadata.failure,
            )
            for error in query.errors.values():
                raise error
            return query.found
        finally:
            self._parts.lister.drop(query)
            metadata.give_back(topics)

    async def first(self, partitions: Iterable[TopicPartition], timeout_s: float | None) -> dict[TopicPartition, int]:
        """The offsets of the first records."""
        found = await self.by_time(dict.fromkeys(partitions, EARLIEST_TIMESTAMP), timeout_s)
        return {each: value.offset if value is not None else 0 for each, value in found.items()}

    async def end(self, partitions: Iterable[TopicPartition], timeout_s: float | None) -> dict[TopicPartition, int]:
        """The offsets after the last records that the consumer may read."""
        found = await self.by_time(dict.fromkeys(partitions, LATEST_TIMESTAMP), timeout_s)
        return {each: value.offset if value is not None else 0 for each, value in found.items()}

    async def committed(
        self, partitions: Collection[TopicPartition], timeout_s: float | None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed."""
        machine, metadata = self._parts.committed, self._parts.metadata
        if machine is None:
            raise _no_group("committed()")
        query = machine.ask(partitions)
        metrics = self._parts.metrics
        began_ns = metrics.now_ns()
        try:
            await self._waiting.done(
                lambda: query.is_done,
                timeout_s,
                f"the committed offsets of group {self._settings.group_id} were not read",
                lambda: query.retried or metadata.failure,
            )
        finally:
            machine.drop(query)
            self._parts.measured.committed_ended(metrics.now_ns() - began_ns, metrics.now_ms())
        if query.error is not None:
            raise query.error
        return query.found

    # Committing

    async def commit(self, offsets: Offsets | None, timeout_s: float | None) -> None:
        """Commit, with retries, until the coordinator has answered."""
        machine = self._machine()
        commit = self._start(offsets, self._waiting.limit_s(timeout_s), is_retried=True)
        marks = self._marks(commit.offsets)
        finder, metadata, metrics = self._parts.finder, self._parts.metadata, self._parts.metrics
        assert finder is not None
        began_ns = metrics.now_ns()
        try:
            await self._waiting.done(
                lambda: commit.is_done,
                timeout_s,
                f"the offsets of group {self._settings.group_id} were not committed",
                lambda: commit.retried or finder.retried_error or metadata.failure,
            )
        finally:
            self._parts.measured.commit_sync_ended(metrics.now_ns() - began_ns, metrics.now_ms())
            if not commit.is_done:
                machine.give_up(commit)
        self._note(commit, marks)
        if commit.error is not None:
            raise commit.error

    def commit_async(self, offsets: Offsets | None, callback: CommitCallback | None = None) -> None:
        """Commit without waiting and without retries."""
        commit = self._start(offsets, self._waiting.limit_s(None), is_retried=False)
        self._unfinished.append((commit, callback or _log_failure, self._marks(commit.offsets)))
        self._parts.runner.wake()

    def commit_automatically(self, offsets: Offsets) -> None:
        """Commit what has changed since the last commit, without waiting."""
        changed, last = self.changed(offsets), self._automatic
        if changed and (last is None or last.is_done or last.offsets != changed):
            commit = self._automatic = self._start(changed, self._waiting.limit_s(None), is_retried=False)
            self._unfinished.append((commit, self._committed_automatically, self._marks(changed)))
            self._parts.runner.wake()

    def changed(self, offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
        """Those of `offsets` that this consumer has not committed before."""
        marks = self._marks(offsets)
        return {each: value for each, value in offsets.items() if self._stored.get(each) != (value, marks.get(each))}

    def at_close(self, is_step_done: bool) -> dict[TopicPartition, OffsetAndMetadata]:
        """What to commit automatically at the end. Of a step that failed, the caller may have committed a part: that stays."""
        offsets = self._reader.offsets(is_step_done=is_step_done)
        if is_step_done:
            return offsets
        marks = self._marks(offsets)
        return {
            each: value
            for each, value in offsets.items()
            if (stored := self._stored.get(each)) is None or stored[1] != marks.get(each) or stored[0].offset <= value.offset
        }

    def _marks(self, offsets: Offsets) -> Marks:
        partitions = self._parts.subscription.partitions
        return {each: (partitions[each], partitions[each].generation) for each in offsets if each in partitions}

    def _note(self, commit: Commit, marks: Marks) -> None:
        """A commit has ended."""
        if self.interceptors is not None and commit.error is None and commit.offsets:
            self.callbacks.append(partial(self.interceptors.on_commit, commit.offsets))
        for each, value in commit.offsets.items():
            if commit.error is None and each in marks:
                self._stored[each] = (value, marks[each])
            else:
                self._stored.pop(each, None)

    async def commit_last(self, offsets: Offsets | None, timeout_s: float) -> None:
        """Before partitions are given up: commit `offsets`, and let earlier commits end. A failure is logged."""
        machine = self._parts.commits
        if machine is None or self._waiting.fault is not None:
            return
        try:
            changed = self.changed(offsets or {})
            if changed:
                await self.commit(changed, timeout_s)
            elif not machine.is_idle:
                await self._waiting.until(lambda: machine.is_idle, timeout_s)
        except WakeupError:
            raise
        except KafkaError as error:
            logger.warning(
                "the last commit before partitions are given up failed: %s. Their next reader may get records again", error
            )

    def _start(self, offsets: Offsets | None, limit_s: float, *, is_retried: bool) -> Commit:
        chosen = self._reader.offsets() if offsets is None else offsets
        deadline_ms = self._parts.runner.now_ms() + int(limit_s * 1000)
        lost = self.lost()
        why = next((lost[each] for each in chosen if each in lost), None)
        if why is None:
            return self._machine().commit(chosen, deadline_ms, is_retried=is_retried)
        # The member may have joined again, and the coordinator would accept the offsets: over those of the new owner.
        refused = Commit(chosen, deadline_ms, is_retried=False)
        refused.end(not_committed(self._machine().group_id, chosen, why))
        return refused

    def _machine(self) -> Commits:
        if self._parts.commits is None:
            raise _no_group("commit()")
        return self._parts.commits

    def _committed_automatically(self, offsets: Offsets, error: KafkaError | None) -> None:
        if error is not None:
            interval_ms = self._settings.auto_commit_interval_ms
            logger.warning("an automatic commit failed: %s; the next one comes in %d ms", error, interval_ms)


def _no_group(call: str) -> InvalidGroupIdError:
    return InvalidGroupIdError(f"{call} needs a group: give the consumer a group_id")


def _log_failure(offsets: Offsets, error: KafkaError | None) -> None:
    if error is not None:
        logger.warning("an asynchronous commit failed: %s. It is not tried again: a later commit makes up for it", error)
