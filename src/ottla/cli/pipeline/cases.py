"""The tests of a pipeline: folders with records that are given and records that are expected, as JSON lines.

    tests/NAME/given/TOPIC.jsonl          sent to the topic before the run
    tests/NAME/expected/TOPIC.jsonl       what the topic must hold afterwards, in any order
    tests/NAME/expected/TABLE.jsonl       the rows of a table or materialized view

A line of a topic is `{"key": …, "value": …}`, with `headers` and `partition` and, in given, `timestamp` (in ms) if wanted.
Values that are no text are written as JSON. An expected line is compared in the fields that it has.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ottla.spark.pipelines.errors import PipelineError

FIELDS = ("key", "value", "headers", "partition", "timestamp")


@dataclass
class Case:
    """One test."""

    name: str
    given: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    expected: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def read_cases(folder: Path) -> list[Case]:
    """The tests of the pipeline in `folder`, sorted by name."""
    found = []
    for path in sorted((folder / "tests").glob("*")):
        if path.is_dir() and not path.name.startswith((".", "__")):
            case = Case(path.name, _read(path / "given"), _read(path / "expected"))
            if not case.expected:
                raise PipelineError(f"{path} has no expected/NAME.jsonl: write what the topic or table NAME must hold")
            found.append(case)
    if not found:
        raise PipelineError(
            f"{folder} has no tests: write tests/NAME/given/TOPIC.jsonl and tests/NAME/expected/TOPIC.jsonl, "
            'with lines such as {"key": "a", "value": {"id": 1}}'
        )
    return found


def _read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {path.stem: _lines(path) for path in sorted(folder.glob("*.jsonl"))}


def _lines(path: Path) -> list[dict[str, Any]]:
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            parsed = json.loads(line)
        except ValueError as error:
            raise PipelineError(f"{path} line {number} is no JSON: {error}") from None
        if not isinstance(parsed, dict):
            raise PipelineError(f'{path} line {number} is {line.strip()}: write an object, such as {{"value": {line.strip()}}}')
        found.append(parsed)
    return found


def check_records(case: str, topic: str, records: list[dict[str, Any]]) -> None:
    """A record may only have the fields of records."""
    for record in records:
        for name in record:
            if name not in FIELDS:
                raise PipelineError(
                    f"the test {case} has a record for {topic} with the field {name}: it may have {', '.join(FIELDS)}; "
                    "the fields of a JSON value go inside of value"
                )


def to_bytes(value: Any) -> bytes | None:
    """A key or value as it is sent: text as it is, None as null, all else as JSON."""
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def from_bytes(raw: bytes | None) -> Any:
    """A key or value as it is compared: JSON if it is an object or a list, else text."""
    if raw is None:
        return None
    text = raw.decode("utf-8", errors="backslashreplace")
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def normal(value: Any) -> Any:
    """A key or value of an expected record in the form of `from_bytes`: 5 and "5" are the same bytes."""
    return from_bytes(to_bytes(value))
