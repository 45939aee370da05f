"""Registrations by several threads through several registries, and a check of all answers."""

import json
import threading
import time
from collections.abc import Sequence

from tests.support.servers.kafka_server import HANG_S

from ottla.schemas import RegistryRefusedError, RegistryUnavailableError, Schema, SchemaRegistry


def numbered_schema(number: int) -> Schema:
    return Schema(json.dumps({"type": "record", "name": f"R{number}", "fields": [{"name": "a", "type": "int"}]}))


class RegistryLoad:
    """Registers schemas through several registries until it is stopped, each schema by two threads, and keeps all answers."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.answers: list[tuple[str, int, int, int]] = []
        """(subject, version, id, number of the schema)"""
        self.refusals: list[str] = []
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(url, place)) for place, url in enumerate([*urls, *urls])]
        for each in self._threads:
            each.start()

    def _run(self, url: str, place: int) -> None:
        registry = SchemaRegistry(url, timeout_s=HANG_S)
        number = 0
        while not self._stopped.is_set():
            number += 1
            subject = f"s{number % 5}"
            try:
                found = registry.register(subject, numbered_schema(number))
                self.answers.append((subject, found.version, found.id, number))
            except (RegistryRefusedError, RegistryUnavailableError) as problem:  # may be stored all the same
                self.refusals.append(str(problem))
                time.sleep(0.05)

    def grow(self, count: int) -> None:
        """Wait until so many more are answered."""
        wanted, deadline = len(self.answers) + count, time.monotonic() + HANG_S
        while len(self.answers) < wanted:
            assert time.monotonic() < deadline, f"no {count} more answers; refused: {self.refusals[-3:]}"
            time.sleep(0.01)

    def stop(self) -> None:
        self._stopped.set()
        for each in self._threads:
            each.join(HANG_S)
            assert not each.is_alive()


def check_answers(urls: Sequence[str], answers: Sequence[tuple[str, int, int, int]]) -> None:
    """One id for each schema, one schema for each id, and every answered version is there, by every registry."""
    assert answers
    numbers_of: dict[int, int] = {}
    ids_of: dict[int, int] = {}
    for _, _, schema_id, number in answers:
        assert numbers_of.setdefault(schema_id, number) == number, f"id {schema_id} is shared"
        assert ids_of.setdefault(number, schema_id) == schema_id, f"schema {number} has two ids"
    for url in urls:
        registry = SchemaRegistry(url, timeout_s=HANG_S)
        for subject, version, schema_id, number in set(answers):
            found = registry.version(subject, version)
            assert (found.id, found.schema.text) == (
                schema_id,
                json.dumps(json.loads(numbered_schema(number).text), separators=(",", ":")),
            )
        for subject in {each[0] for each in answers}:
            versions = registry.versions(subject)
            assert versions == list(range(1, len(versions) + 1))
