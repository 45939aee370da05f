"""What the schema registry says of the schemas that produced records name: under which subjects each is registered.

Kept by mark (`records/produced/schema_ids.py`). The registry is asked in worker threads, never on the loop: once for each mark
that is new, then again when the answer is `STALE_S` old, which no record waits for. An answer speaks against a record only if
it was asked for after the record came, because producers write at once what they have just registered. The same mark is asked
about once in `PAUSE_S`: a producer of refused records waits, and costs the registry little. While it is away, what
is known goes on being used.

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.env.schema_registry import RegistryAddress, RegistryFailed
from ottla.records.produced.schema_ids import BY_GUID, Mark, guid_of, id_of

if TYPE_CHECKING:
    from ottla.env.schema_registry import SchemaRegistries

STALE_S = 300.0
PAUSE_S = 0.1
AWAY_S = 1.0
"""How long a registry that did not answer is not asked again."""
ASKED_AT_ONCE = 4
"""How many marks the registry is asked about at a time."""
KEPT_MAX = 20_000
MISSING_KEPT_MAX = 2_000
"""Marks that the registry does not know are kept apart: those who make them up cannot drive out the others."""

TopicSubject = Callable[[str, bool], str]


class Registered(NamedTuple):
    """What the registry says of one schema."""

    subjects: frozenset[str]
    """Empty: it does not have the schema."""
    names: tuple[str, ...]
    """The full names of the records that it describes."""
    asked_s: float

    def allowed_in(self, topic: str, strategy: str, is_key: bool) -> bool:
        """Whether the schema is under a subject that `strategy` allows for the topic."""
        return not self.subjects.isdisjoint(subjects_of(topic, strategy, is_key, self.names))


def subjects_of(topic: str, strategy: str, is_key: bool, names: Iterable[str]) -> list[str]:
    """The subjects that may have the schemas of a topic's records, if these have one of `names`."""
    kind = strategy.rpartition(".")[2]
    if kind == "TopicNameStrategy":
        return [f"{topic}-{'key' if is_key else 'value'}"]
    return [f"{topic}-{name}" if kind == "TopicRecordNameStrategy" else name for name in names]


class SchemaSubjects:
    """The answers of one registry."""

    def __init__(self, source: SchemaRegistries, address: RegistryAddress) -> None:
        self.address = address
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._found: dict[Mark, Registered] = {}
        self._missing: dict[Mark, Registered] = {}
        self._asking: dict[Mark, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(ASKED_AT_ONCE)
        self._failure: RegistryFailed | None = None
        self._failed_at_s = float("-inf")
        self._is_closed = False

    def close(self) -> None:
        """Ask no more. What is under way ends by itself, with its request to the registry."""
        self._is_closed = True

    def known(self, mark: Mark) -> Registered | None:
        """What was last said of a schema; None: nothing yet."""
        found = self._found.get(mark)
        if found is None:
            return self._missing.get(mark)
        if self._loop.time() - found.asked_s > STALE_S and mark not in self._asking and self.failure is None:
            self._ask(mark)  # in the background: what is known is used meanwhile
        return found

    @property
    def failure(self) -> RegistryFailed | None:
        """Why the registry could not be asked just now."""
        return self._failure if self._loop.time() - self._failed_at_s <= AWAY_S else None

    def ask(self, marks: Iterable[Mark]) -> asyncio.Future[Any]:
        """Ask about all of `marks`. The future ends when there are answers, or `failure` says why there are none."""
        if self.failure is not None:
            done: asyncio.Future[Any] = self._loop.create_future()
            done.set_result(None)
            return done
        return asyncio.gather(*(self._asking.get(mark) or self._ask(mark) for mark in marks))

    def _ask(self, mark: Mark) -> asyncio.Task[None]:
        task = self._asking[mark] = self._loop.create_task(self._answer(mark))
        task.add_done_callback(lambda _: self._asking.pop(mark, None))
        return task

    async def _answer(self, mark: Mark) -> None:
        try:
            if (last := self._found.get(mark) or self._missing.get(mark)) is not None:
                await asyncio.sleep(last.asked_s + PAUSE_S - self._loop.time())
            async with self._turns:
                if self.failure is not None:
                    return
                asked_s = self._loop.time()
                subjects, names = await self._loop.run_in_executor(None, self._look_up, mark)
        except RegistryFailed as failure:
            self._failure, self._failed_at_s = failure, self._loop.time()
            return
        except (AttributeError, KeyError, TypeError, ValueError):  # JSON, but of another shape
            self._failure, self._failed_at_s = self._no_registry(), self._loop.time()
            return
        self._failure = None
        self._found.pop(mark, None)
        self._missing.pop(mark, None)
        kept, most = (self._found, KEPT_MAX) if subjects else (self._missing, MISSING_KEPT_MAX)
        if len(kept) >= most:
            del kept[next(iter(kept))]
        kept[mark] = Registered(subjects, names, asked_s)

    # In a worker thread

    def _look_up(self, mark: Mark) -> tuple[frozenset[str], tuple[str, ...]]:
        """The subjects and the record names of the schema that a mark names. Raises `RegistryFailed`."""
        schema_id = id_of(mark)
        if mark[0] == BY_GUID:
            places = self._read(f"/schemas/guids/{guid_of(mark)}/ids") or []
            ids = [place["id"] for place in places if place.get("context", ".") == "."]
            if not ids:
                return frozenset(), ()
            schema_id = ids[0]
        if schema_id < 0:
            return frozenset(), ()
        subjects = self._read(f"/schemas/ids/{schema_id}/subjects") or []
        if not subjects:
            return frozenset(), ()
        schema = self._read(f"/schemas/ids/{schema_id}") or {}
        return frozenset(subjects), record_names(schema.get("schemaType") or "AVRO", schema.get("schema") or "")

    def _read(self, path: str) -> Any:
        if self._is_closed:
            raise RegistryFailed("the node is stopping")
        page = self._source.get(self.address, path)
        return None if page is None else json.loads(page)

    def _no_registry(self) -> RegistryFailed:
        return RegistryFailed(
            f"{', '.join(self.address.urls)} does not answer as a schema registry does: correct confluent.schema.registry.url"
        )


# Names of records


def record_names(kind: str, text: str) -> tuple[str, ...]:
    """The full names of the records that a schema describes: of a .proto file all messages. Empty if it names none."""
    if kind == "PROTOBUF":
        return tuple(_message_names(text))
    try:
        schema = json.loads(text)
    except ValueError:
        return ()
    if not isinstance(schema, dict):
        return (schema,) if isinstance(schema, str) else ()
    if kind == "JSON":
        return (schema["title"],) if isinstance(schema.get("title"), str) else ()
    name, namespace = str(schema.get("name") or schema.get("type") or ""), schema.get("namespace")
    return (f"{namespace}.{name}" if namespace and "." not in name else name,) if name else ()


_PROTO_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[\w.]+|[{};]', re.DOTALL)


def _message_names(text: str) -> list[str]:
    """The messages of a .proto file, nested ones too, by their full names."""
    tokens = [token for token in _PROTO_TOKENS.findall(text) if token[0] not in "/\"'"]
    package, names, scope = "", [], [""]
    for at, token in enumerate(tokens):
        begins = at == 0 or tokens[at - 1] in "{};"
        if token == "package" and begins and len(scope) == 1 and at + 1 < len(tokens):
            package = tokens[at + 1]
        elif token == "{":
            is_message = at >= 2 and tokens[at - 2] == "message" and (at == 2 or tokens[at - 3] in "{};")
            inner = ".".join(filter(None, (scope[-1] or package, tokens[at - 1]))) if is_message else scope[-1]
            scope.append(inner)
            if is_message:
                names.append(inner)
        elif token == "}" and len(scope) > 1:
            scope.pop()
    return names
