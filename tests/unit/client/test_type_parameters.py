"""What a type checker says of a program that uses the clients without naming their types of keys and values."""

from pathlib import Path

import pytest

import ottla

PROGRAM = """
from ottla import Consumer, ConsumerRecord, Producer, aio


def synchronous() -> None:
    with Producer("localhost:9092", value_serializer="json") as producer:
        print(producer.send("t", {"a": 1}, headers={"h": b"1"}).result(timeout=5).offset + 1)
    with Consumer("localhost:9092") as consumer:
        for record in consumer.poll(1.0):
            show(record)


def show(record: ConsumerRecord) -> None:
    print(record.offset + 1)


async def asynchronous() -> None:
    async with aio.Producer("localhost:9092") as producer, aio.Consumer("localhost:9092") as consumer:
        await (await producer.send("t", b"v", headers=[("h", None)]))
        print(await consumer.poll(1.0))


def typed() -> None:
    with Producer[str, int]("localhost:9092") as producer:
        producer.send("t", "text")
"""


@pytest.mark.slow
def test_programs_need_annotations_only_for_types_they_want_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = pytest.importorskip("mypy.api")
    monkeypatch.setenv("MYPYPATH", str(Path(ottla.__file__).parents[1]))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    cache = f"--cache-dir={tmp_path / 'cache'}"
    out, err, _ = api.run(["--strict", "--config-file=", cache, "--follow-imports=silent", str(program)])
    (line,) = [each for each in out.splitlines() if "error:" in each] or [out + err]
    assert 'has incompatible type "str"; expected "int | None"' in line
