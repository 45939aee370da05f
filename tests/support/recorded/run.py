"""`Recorded`: producers and consumers of several libraries, whose history is recorded and checked (`ottla.sim.histories`).

    with Recorded(tmp_path) as run:
        run.produce("ottla", bootstrap, topic, partitions=3)
        run.produce("confluent", bootstrap, topic, partitions=3)
        run.read("ottla", bootstrap, topic, partitions=3)
        run.await_more(50)
        ... kill a broker ...
        run.await_more(50)
    # leaving the block stops the producers, lets the consumers read to the end, and checks the history

If something is found, or the test fails, the history is in `tmp_path/history.jsonl`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar

from tests.support.peers.topics import await_true
from tests.support.recorded.producers import ConfluentProducer, JavaProducer, OttlaProducer, RecordedProducer
from tests.support.recorded.readers import ConfluentReader, OttlaReader, Reader
from tests.support.servers.java_programs import JavaPrograms

from ottla.sim.histories.checks import Report, check
from ottla.sim.histories.history import History, Send

_PRODUCERS: dict[str, Callable[..., RecordedProducer]] = {
    "ottla": OttlaProducer,
    "confluent": ConfluentProducer,
    "java": JavaProducer,
}
_READERS: dict[str, Callable[..., Reader]] = {"ottla": OttlaReader, "confluent": ConfluentReader}


class RecordedClient(Protocol):
    """Any client that runs in the background."""

    failures: list[str]

    def stop(self) -> None: ...


C = TypeVar("C", bound=RecordedClient)


class Recorded:
    """The clients of one test and their history. `java` starts Java programs, for producers of that library."""

    def __init__(self, folder: Path, java: JavaPrograms | None = None) -> None:
        self.history = History(time.monotonic)
        self.report: Report | None = None
        self._folder = folder
        self._java = java
        self._producers: list[RecordedProducer] = []
        self._others: list[RecordedClient] = []
        self._readers: list[Reader] = []
        self._stopped: list[RecordedProducer] = []

    def produce(self, library: str, bootstrap: str, topic: str, partitions: int, **settings: Any) -> RecordedProducer:
        """Start an idempotent producer with acks=all; `settings` in the names of its library."""
        name = f"{library}-{topic}-{len(self._producers)}"
        if library == "java":
            settings = {"programs": self._java} | settings
        made = _PRODUCERS[library](self.history, name, bootstrap, topic, partitions, **settings)
        self._producers.append(made)
        return made

    def read(
        self, library: str, bootstrap: str, topic: str, partitions: int, *, is_committed: bool = False, **settings: Any
    ) -> None:
        """Start a consumer that reads everything from the start."""
        name = f"{library}-reader-{len(self._readers)}"
        self._readers.append(_READERS[library](self.history, name, bootstrap, topic, partitions, is_committed, **settings))

    def add(self, client: C) -> C:
        """A client of another kind, which has been started with this history; it is stopped with the producers."""
        self._others.append(client)
        return client

    @property
    def failures(self) -> list[str]:
        """What went wrong so far: records that were not stored, clients that stopped."""
        return [failure for client in (*self._producers, *self._others, *self._readers) for failure in client.failures]

    def await_more(self, count: int, producer: RecordedProducer | None = None) -> None:
        """Wait until every producer (or this one) was told that so many further records are stored."""
        asked = self._producers if producer is None else [producer]
        goals = {each.name: each.stored + count for each in asked if each not in self._stopped}

        def is_so() -> bool:
            assert not self.failures, self.failures[:5]
            return all(each.stored >= goals[each.name] for each in asked if each.name in goals)

        await_true(is_so, f"{count} more records of {', '.join(goals)} to be stored")

    def stop(self, producer: RecordedProducer) -> None:
        """Let one producer deliver what it has, and end."""
        if producer not in self._stopped:
            self._stopped.append(producer)
            producer.stop()

    def __enter__(self) -> Recorded:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for producer in self._producers:
            self.stop(producer)
        for client in self._others:
            client.stop()
        try:
            if error is None:
                assert not self.failures, self.failures[:5]
                self._await_read()
        finally:
            for reader in self._readers:
                reader.stop()
            if error is not None:
                self._write(error)
        if error is None:
            assert not self.failures, self.failures[:5]
            self.report = check(self.history, is_read_whole=bool(self._readers))
            try:
                self.report.raise_findings()
            except AssertionError as found:
                self._write(found)
                raise
            assert self.report.stored, "nothing was stored, so nothing was checked"

    def _await_read(self) -> None:
        stored = {
            send.value
            for send in self.history.of(Send)
            if send.offset is not None and (send.transaction is None or send.transaction.is_committed)
        }
        for reader in self._readers:
            reader.looks_for_end = True

            def is_so(reader: Reader = reader) -> bool:
                return bool(reader.failures) or (stored <= reader.values and reader.is_at_end)

            try:
                await_true(is_so, f"{reader.name} to read all {len(stored)} stored records")
            except AssertionError as late:
                missing = sorted(stored - reader.values)
                late.add_note(f"{len(missing)} are missing: {missing[:5]}")
                raise

    def _write(self, error: BaseException) -> None:
        path = self._folder / "history.jsonl"
        path.write_text("\n".join(self.history.to_lines()) + "\n")
        error.add_note(f"The history is in {path}: python -m ottla.sim.histories shows what is wrong with it")
