"""`Registry`: connects the state, the decisions, the languages and the topic. What the REST API calls.

A write is decided on the newest state that was read, appended, and answered when it was read back. If another registry has
written in between, the append is refused and the decision made again (`topic.py`). What stray records cover is written again
before the next write is answered, and by itself soon after it was read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.registry import decisions, errors
from ottla.registry.decisions import Checked, Decision, Outdated, Registration
from ottla.registry.records import Content, Stored
from ottla.registry.state import RegistryState, context_of
from ottla.registry.topic import LogReplaced, SchemasTopic
from ottla.registry.work import SchemaWork
from ottla.schemas.languages import Source

logger = logging.getLogger("ottla.registry")

WRITE_S = 30.0
ATTEMPTS = 50
READ_AGAIN_S = 1.0
REPAIR_AGAIN_S = 10.0


class Registry:
    """A registry on a cluster. `reading` and `writing` are two clusters of the same settings."""

    def __init__(self, reading: Cluster, writing: Cluster) -> None:
        self.may_write: Callable[[], bool] = lambda: True
        """Whether this registry may write by itself: not while another member of its group leads."""
        self.state = RegistryState()
        self.work = SchemaWork()
        self._topic = SchemasTopic(reading, writing, self.state.replay)
        self._writes = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Read all schemas, then follow the topic."""
        await self._topic.open()
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._keep_repaired())]
        logger.info("read %d records of _schemas", self._topic.next_offset)

    async def _follow(self) -> None:
        while True:
            try:
                await self._topic.follow()
            except LogReplaced as problem:
                logger.error("topic _schemas is read again: %s", problem)
            async with self._writes:
                self.state = await self._read_again()

    async def _read_again(self) -> RegistryState:
        while True:
            fresh = RegistryState()
            try:
                await self._topic.reopen(fresh.replay)
                return fresh
            except (KafkaError, LogReplaced, errors.RegistryError) as problem:
                self._topic.failure = str(problem)
                logger.warning("topic _schemas cannot be read: %s", problem)
                await asyncio.sleep(READ_AGAIN_S)

    async def _keep_repaired(self) -> None:
        while True:
            await self._topic.until(lambda: bool(self.state.covered))
            if self.may_write():
                try:
                    async with self._writes:
                        await self._repair()
                    continue
                except (KafkaError, errors.RegistryError) as problem:
                    logger.warning("records of _schemas that strays cover could not be written again: %s", problem)
            await asyncio.sleep(REPAIR_AGAIN_S)

    async def _repair(self) -> None:
        """Write what is covered again, once: a registry that finds it written by another one loses the race."""
        while self.state.covered:
            place = min(self.state.covered)
            written = decisions.repair(self.state, *place)
            key = written[-1][0].decode()
            try:
                if await self._topic.append(written, WRITE_S):
                    logger.warning("%s was written again behind a stray record", key)
            except errors.RegistryError as problem:
                if problem.code != 42209:
                    raise
                logger.error("%s cannot be written again behind a stray record: %s", key, problem)
                self.state.covered.discard(place)

    async def close(self) -> None:
        for each in self._tasks:
            each.cancel()
        await self.work.close()

    @property
    def failure(self) -> str | None:
        """Why the topic cannot be read now: what is served may be old."""
        return self._topic.failure

    async def write(self, decide: Callable[[RegistryState], Decision]) -> Any:
        """What a decision answers, once its records are committed."""
        async with self._writes:
            for _ in range(ATTEMPTS):
                await self._repair()
                decision = decide(self.state)
                if not decision.records or await self._topic.append(decision.records, WRITE_S):
                    return decision.answer
        raise errors.RegistryError(500, 50001, "other registries write all the time: try again")

    # Schemas

    async def content(self, subject: str, wanted: Registration, *, normalize: bool | None, inherits: bool) -> Content:
        """A schema as it would be stored in a subject. Raises if it cannot be parsed."""
        given = decisions.content_of(self.state, subject, wanted, inherits=inherits)
        parsed = await self.work.parse(self._source(subject, given))
        if normalize is None:
            normalize = bool(self.state.effective_config(subject).get("normalize"))
        return given._replace(text=parsed.normalized if normalize else parsed.canonical)

    async def register(self, subject: str, wanted: Registration, *, normalize: bool | None = None) -> Any:
        """Store a schema in a subject, if it is new there and compatible."""
        decisions.check_subject(subject)
        for _ in range(ATTEMPTS):
            content = await self.content(subject, wanted, normalize=normalize, inherits=True)
            checked = Checked(content)
            if wanted.id < 0 and decisions.known(self.state, subject, content) is None:
                checked = await self._compared(subject, content)
            try:
                return await self.write(lambda state: decisions.register(state, subject, wanted, checked))  # noqa: B023
            except Outdated:
                continue  # another version came while this one was compared
        raise errors.RegistryError(500, 50001, f"subject {subject} changes all the time: try again")

    async def look_up(self, subject: str, wanted: Registration, *, normalize: bool | None, deleted: bool) -> Stored:
        """The version of a subject that has a schema."""
        if not self.state.has_subject(subject, deleted=deleted):
            raise errors.subject_not_found(subject)
        candidates = [
            await self.content(subject, wanted, normalize=normalize, inherits=False),
            await self.content(subject, wanted, normalize=normalize, inherits=True),
        ]
        versions = self.state.versions(subject, deleted=deleted)
        for content in candidates:
            for each in reversed(versions):
                if each.content == content:
                    return each
        if wanted.metadata is None and wanted.rule_set is None:
            for each in reversed(versions):
                if each.content[:3] == candidates[0][:3]:
                    return each
        raise errors.schema_not_found()

    async def _compared(self, subject: str, content: Content) -> Checked:
        level, versions = decisions.to_compare(self.state, subject, content)
        messages: list[str] = []
        for stored in versions:
            messages = await self.differences(subject, level, content, stored)
            if messages:
                break
        return Checked(content, tuple((each.version, each.id) for each in versions), tuple(messages))

    async def differences(self, subject: str, level: str, content: Content, stored: Stored) -> list[str]:
        """Why a schema is incompatible with a version, at a level."""
        policy = self.state.effective_config(subject).get("compatibilityPolicy") or "STRICT"
        new, old = self._source(subject, content), self._source(subject, stored.content)
        found: list[str] = []
        if level.startswith(("BACKWARD", "FULL")):
            found += await self.work.differences(new, old, policy)
        if level.startswith(("FORWARD", "FULL")):
            found += await self.work.differences(old, new, policy)
        if found:
            found.append(f"{{oldSchemaVersion: {stored.version}}}")
        return found

    async def text(self, subject: str, content: Content, form: str) -> str:
        """A schema's text in a form; `serialized` is for Protobuf."""
        if form == "serialized" and content.kind == "PROTOBUF":
            return await self.work.serialized(self._source(subject, content))
        return content.text

    def _source(self, subject: str, content: Content) -> Source:
        return decisions.source_of(self.state, context_of(subject), content)
