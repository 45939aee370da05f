"""Schema registries beside each other, that register schemas while nodes fail.

They run the registry that users run, but for the HTTP in front of it and the processes that parse: every text is a schema, and
all of them are compatible. A registry may vanish at any point; the next one reads the topic. What was answered must hold.
"""

from __future__ import annotations

import asyncio

from ottla.client.cluster import open_cluster
from ottla.config.client import admin_settings
from ottla.errors import KafkaError
from ottla.registry.decisions import Registration
from ottla.registry.errors import RegistryError
from ottla.registry.service import Registry
from ottla.registry.work import SchemaWork
from ottla.schemas.languages import Parsed, Source
from ottla.sim.checkers.checker import Violation
from ottla.sim.clients.client import BACKOFF_S_MAX, CLIENT_SETTINGS, Client, Stage

SUBJECTS = 3
SCHEMAS = 40
LIFE_S_MAX = 6.0
SHOWN_S_MAX = 10.0


class AnyText(SchemaWork):
    """Every text is a schema, and all are compatible: what the languages say is not under test."""

    async def parse(self, source: Source) -> Parsed:
        return Parsed(source.text, source.text)

    async def differences(self, reader: Source, writer: Source, policy: str) -> list[str]:
        return []


class Answers:
    """What the registries of a run have answered."""

    def __init__(self) -> None:
        self.versions: dict[tuple[str, int], tuple[int, str]] = {}
        """(subject, version) → (id, text)"""
        self._texts: dict[int, str] = {}
        self._ids: dict[str, int] = {}

    def add(self, subject: str, version: int, schema_id: int, text: str) -> None:
        if self.versions.setdefault((subject, version), (schema_id, text)) != (schema_id, text):
            raise Violation(f"version {version} of {subject} was answered twice: {text} and {self.versions[subject, version]}")
        if self._texts.setdefault(schema_id, text) != text:
            raise Violation(f"schema id {schema_id} was given to {text} and to {self._texts[schema_id]}")
        if self._ids.setdefault(text, schema_id) != schema_id:
            raise Violation(f"{text} has the ids {schema_id} and {self._ids[text]}")

    def missing(self, registry: Registry) -> str:
        """Which answer does not hold; empty if all do."""
        for (subject, version), (schema_id, text) in self.versions.items():
            stored = registry.state.version(subject, version)
            if stored is None or (stored.id, stored.content.text) != (schema_id, text):
                return f"version {version} of {subject} was answered as id {schema_id}, {text}, and is {stored}"
        return ""


class RegistryClient(Client):
    """One registry at a time, with a few requests at once."""

    def __init__(self, stage: Stage, name: str, answers: Answers) -> None:
        super().__init__(stage, name)
        self._answers = answers

    async def run(self) -> None:
        while not self.stage.is_ending:
            life = asyncio.ensure_future(self._live())
            await asyncio.wait([life], timeout=self.random.uniform(1.0, LIFE_S_MAX))
            if not life.done():
                life.cancel()  # it vanishes with what is under way
                await asyncio.wait([life])
            elif life.exception() is not None:
                await life
            self.die()
            await self.pause(BACKOFF_S_MAX)
        registry = await self._opened()
        begun_s = self.stage.now_s()
        while missing := self._answers.missing(registry):  # a new leader shows the newest records once its followers have asked
            if self.stage.now_s() - begun_s > SHOWN_S_MAX:
                raise Violation(missing)
            await self.pause(BACKOFF_S_MAX)
        await registry.close()

    async def _opened(self) -> Registry:
        while True:
            world, settings = self.world(), admin_settings(self.stage.bootstrap_servers, config={}, keywords=CLIENT_SETTINGS)
            clusters = [open_cluster(world, settings, f"{self.name}-{each}") for each in ("reader", "writer")]
            registry = Registry(*clusters)
            registry.work = AnyText()
            try:
                await registry.start()
                return registry
            except (KafkaError, RegistryError) as problem:
                self.note("no registry", str(problem)[:100])
                await registry.close()
                self.die()
                await self.pause(BACKOFF_S_MAX)

    async def _live(self) -> None:
        registry = await self._opened()
        requests = [asyncio.ensure_future(self._register(registry)) for _ in range(2)]
        try:
            await asyncio.gather(*requests)
        finally:
            for each in requests:
                each.cancel()
            await registry.close()

    async def _register(self, registry: Registry) -> None:
        while not self.stage.is_ending:
            subject = f"subject{self.random.randrange(SUBJECTS)}"
            text = f'"schema {self.random.randrange(SCHEMAS)} of {self.stage.seed}"'
            try:
                answer = await registry.register(subject, Registration(text, "AVRO"))
            except RegistryError as problem:
                self.note("refused", f"{subject} {text}: {problem.text[:80]}")
            else:
                self.note("registered", f"{subject} {answer['version']} {answer['id']} {text}")
                self._answers.add(subject, answer["version"], answer["id"], text)
            await self.pause(BACKOFF_S_MAX)
