"""What is kept of a registry's answers: asked once, again when it speaks against a record, within bounds; names in schemas."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from ottla.broker.requests import schema_subjects
from ottla.broker.requests.schema_subjects import SchemaSubjects, record_names
from ottla.env.schema_registry import RegistryAddress, RegistryFailed

ADDRESS = RegistryAddress(("http://registry",))


def mark(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


class Source:
    """A registry with the ids that `subjects` has."""

    def __init__(self) -> None:
        self.subjects: dict[int, list[str]] = {7: ["orders-value"]}
        self.asked: list[str] = []
        self.is_away = False

    def get(self, address: RegistryAddress, path: str) -> bytes | None:
        self.asked.append(path)
        if self.is_away:
            raise RegistryFailed("away")
        number = int(path.split("/")[3])
        if number not in self.subjects:
            return None
        return json.dumps(self.subjects[number] if path.endswith("subjects") else {"schema": '"string"'}).encode()


def run(work: Callable[[SchemaSubjects, Source], Awaitable[None]]) -> None:
    async def main() -> None:
        source = Source()
        await work(SchemaSubjects(source, ADDRESS), source)

    asyncio.run(main())


def test_those_who_wait_for_one_answer_ask_once() -> None:
    async def work(subjects: SchemaSubjects, source: Source) -> None:
        assert subjects.known(mark(7)) is None
        await asyncio.gather(*(subjects.ask([mark(7)]) for _ in range(5)))
        known = subjects.known(mark(7))
        assert known is not None
        assert known.allowed_in("orders", "TopicNameStrategy", False)
        assert not known.allowed_in("orders", "TopicNameStrategy", True)
        assert source.asked == ["/schemas/ids/7/subjects", "/schemas/ids/7"]

    run(work)


def test_the_same_mark_is_asked_about_after_a_pause() -> None:
    async def work(subjects: SchemaSubjects, source: Source) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for _ in range(3):
            await subjects.ask([mark(8)])
        assert loop.time() - began_s >= 2 * schema_subjects.PAUSE_S
        assert source.asked == ["/schemas/ids/8/subjects"] * 3
        source.subjects[8] = ["orders-value"]
        await subjects.ask([mark(8)])
        known = subjects.known(mark(8))
        assert known is not None
        assert known.subjects == {"orders-value"}

    run(work)


def test_unknown_marks_do_not_drive_out_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_subjects, "MISSING_KEPT_MAX", 3)

    async def work(subjects: SchemaSubjects, source: Source) -> None:
        await subjects.ask([mark(7)])
        await subjects.ask([mark(number) for number in range(100, 110)])
        assert subjects.known(mark(7)) is not None
        assert sum(subjects.known(mark(number)) is not None for number in range(100, 110)) == 3

    run(work)


def test_a_registry_that_is_away_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(subjects: SchemaSubjects, source: Source) -> None:
        source.is_away = True
        await subjects.ask([mark(7)])
        await subjects.ask([mark(8)])
        assert str(subjects.failure) == "away"
        assert len(source.asked) == 1
        monkeypatch.setattr(schema_subjects, "AWAY_S", -1)
        source.is_away = False
        await subjects.ask([mark(7)])
        assert subjects.failure is None
        assert subjects.known(mark(7)) is not None

    run(work)


@pytest.mark.parametrize("answer", [b"<html>", b"7", b'["orders-value"]', b"[1]", b"[[]]"])
def test_a_negative_id_is_none_and_no_answer_of_another_server_counts(answer: bytes) -> None:
    class Other(Source):
        def get(self, address: RegistryAddress, path: str) -> bytes | None:
            return answer

    async def work(subjects: SchemaSubjects, source: Source) -> None:
        negative = b"\0\xff\xff\xff\xff"
        await subjects.ask([negative])
        assert source.asked == []
        known = subjects.known(negative)
        assert known is not None
        assert not known.subjects
        others = SchemaSubjects(Other(), ADDRESS)
        await others.ask([mark(7)])
        assert "does not answer as a schema registry does: correct confluent.schema.registry.url" in str(others.failure)
        closed = SchemaSubjects(source, ADDRESS)
        closed.close()
        await closed.ask([mark(7)])
        assert str(closed.failure) == "the node is stopping"
        assert source.asked == []

    run(work)


def test_old_answers_are_refreshed_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_subjects, "STALE_S", -1)
    monkeypatch.setattr(schema_subjects, "PAUSE_S", 0)

    async def work(subjects: SchemaSubjects, source: Source) -> None:
        await subjects.ask([mark(7)])
        source.subjects[7] = ["payments-value"]
        async with asyncio.timeout(30):
            while (known := subjects.known(mark(7))) is None or known.subjects != {"payments-value"}:
                await asyncio.sleep(0)

    run(work)


@pytest.mark.parametrize(
    ("kind", "text", "names"),
    [
        ("AVRO", '"string"', ("string",)),
        ("AVRO", '{"type": "record", "name": "Order", "namespace": "shop", "fields": []}', ("shop.Order",)),
        ("AVRO", '{"type": "record", "name": "a.Order", "namespace": "shop", "fields": []}', ("a.Order",)),
        ("AVRO", '["null", "string"]', ()),
        ("AVRO", "damaged", ()),
        ("JSON", '{"title": "Order"}', ("Order",)),
        ("JSON", '{"type": "object"}', ()),
        ("JSON", "true", ()),
        ("PROTOBUF", 'message A { enum E { X = 0; } message B {} oneof c { int32 d = 1; } }', ("A", "A.B")),
        ("PROTOBUF", "package a.b; /* message No { */\nmessage message { string package = 1; }", ("a.b.message",)),
        ("PROTOBUF", "message A { option x = 'message B {'; } // message C {", ("A",)),
    ],
)  # fmt: skip
def test_names_of_records(kind: str, text: str, names: tuple[str, ...]) -> None:
    assert record_names(kind, text) == names
