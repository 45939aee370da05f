"""`ottla pipeline test`: runs a pipeline against a broker of its own, once for each folder with records.

    tests/NAME/given/TOPIC.jsonl          sent to the topic before the run
    tests/NAME/expected/TOPIC.jsonl       what the topic must hold afterwards, in any order
    tests/NAME/expected/TABLE.jsonl       the rows of a table or materialized view

A line of a topic is `{"key": …, "value": …}`, with `headers` and `partition` and, in given, `timestamp` (in ms) if wanted.
Values that are no text are written as JSON. An expected line is compared in the fields that it has.
"""

from __future__ import annotations

import difflib
import json
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from ottla.cli.common.options import json_option
from ottla.cli.common.output import print_json, say
from ottla.cli.pipeline.options import environment_options, pipeline_argument, session_for
from ottla.errors import OttlaError
from ottla.spark.pipelines import checks
from ottla.spark.pipelines.environments import Environment
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.spec import Schedule, Spec, read_spec

EXAMPLES = """\b
Examples:
  ottla pipeline test orders
  ottla pipeline test orders --only large-orders-only
"""


@click.command("test", epilog=EXAMPLES)
@pipeline_argument
@click.option("--only", multiple=True, metavar="NAME", help="Run this test only. Repeatable.")
@environment_options
@json_option
def test(place: str, environment: Environment, only: tuple[str, ...], as_json: bool) -> int:
    """Run the tests of the pipeline in FOLDER, each once through the pipeline, on a broker and a storage of its own.

    A test is a folder: tests/NAME/given/TOPIC.jsonl are records to send, tests/NAME/expected/TOPIC.jsonl what the topic (or
    table) must hold afterwards, in any order. Nothing touches the real cluster. Exit code 1 if a test fails.
    """
    spec = read_spec(place, environment)
    cases = [case for case in read_cases(spec.folder) if not only or case.name in only]
    if not cases:
        raise click.UsageError(f"there is no test {', '.join(only)} in {spec.folder / 'tests'}")
    results = []
    with session_for(spec, None, None, quiet=as_json) as spark:
        for case in cases:
            begin_s = time.monotonic()
            differences = run_case(spec, case, spark)
            results.append({"test": case.name, "passed": not differences, "differences": differences})
            if not as_json:
                say(f"{'failed' if differences else 'passed'}  {case.name}  ({time.monotonic() - begin_s:.1f} s)")
                for line in differences:
                    say(f"    {line}")
    failed = sum(not each["passed"] for each in results)
    if as_json:
        print_json(results)
    else:
        say(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


def run_case(spec: Spec, case: Case, spark: Any) -> list[str]:
    """Run one test; returns the differences, or the error that ended it."""
    from ottla.testing import Broker

    with tempfile.TemporaryDirectory(prefix="ottla-test-") as folder, Broker() as broker:
        own = replace(spec, storage=folder).with_bootstrap(broker.bootstrap_servers)
        problems = checks.option_problems(own)
        if problems:
            return problems
        try:
            tables = _run(own, case, broker, spark)
        except OttlaError as error:
            return [str(error)]
        differences = []
        for name, expected in case.expected.items():
            if name in tables:
                actual = tables[name]
            else:
                check_records(case.name, name, expected)
                expected = [_normal(each) for each in expected]
                actual = [_record(each) for each in broker.records(name)]
            differences += compare(name, expected, actual)
        return differences


def _run(spec: Spec, case: Case, broker: Any, spark: Any) -> dict[str, list[dict[str, Any]]]:
    """Send what is given, run the pipeline once, and return the rows of the expected tables."""
    from ottla.spark.pipelines.resolution import prepared, quoted
    from ottla.spark.pipelines.run import Run

    with prepared(spec, spark) as resolved:
        outputs = resolved.graph.outputs
        topics = {*checks.topics_wanted(spec), *case.given, *(name for name in case.expected if name not in resolved.tables)}
        topics |= {name for each in outputs.values() if each.format == "ottla" for name in checks.topics_of(each.options)}
        topics |= set(resolved.graph.dead_letter_topics())
        for topic in sorted(topics):
            broker.create_topic(topic, partitions=2)
        for topic, records in case.given.items():
            check_records(case.name, topic, records)
            for record in records:
                _send(broker, topic, record)
        Run(resolved, spark, Schedule()).run()
        rows = {}
        for name in set(case.expected) & set(resolved.tables):
            spark.catalog.refreshTable(name)
            rows[name] = [json.loads(line) for line in spark.sql(f"SELECT * FROM {quoted(name)}").toJSON().collect()]
        return rows


def _send(broker: Any, topic: str, record: dict[str, Any]) -> None:
    headers = record.get("headers") or {}
    if not isinstance(headers, dict):
        raise PipelineError(f'the headers of a record for {topic} are {headers!r}: write them as {{"name": "text"}}')
    broker.produce(
        topic,
        to_bytes(record.get("value")),
        key=to_bytes(record.get("key")),
        headers=[(name, to_bytes(value)) for name, value in headers.items()],
        partition=record.get("partition"),
        timestamp=record.get("timestamp"),
    )


def _record(found: Any) -> dict[str, Any]:
    """A record of the broker in the form of an expected line."""
    return {
        "key": from_bytes(found.key),
        "value": from_bytes(found.value),
        "headers": {name: from_bytes(value) for name, value in found.headers},
        "partition": found.partition,
        "timestamp": found.timestamp,
    }


def _normal(expected: dict[str, Any]) -> dict[str, Any]:
    return {name: normal(value) if name in ("key", "value") else value for name, value in expected.items()}


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


SHOWN_MAX = 10


def compare(name: str, expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> list[str]:
    """Lines of a diff; none if every expected item is there once, and no other. Each is compared in the fields it names."""
    rest = list(actual)
    missing = []
    for want in expected:
        found = next((each for each in rest if _matches(want, each)), None)
        if found is None:
            missing.append(want)
        else:
            rest.remove(found)
    if not missing and not rest:
        return []
    fields = {field for each in expected for field in each}
    lines = [f"{name}: {len(expected)} expected, {len(actual)} found"]
    for want in missing[:SHOWN_MAX]:
        near = _nearest(want, rest, fields)
        lines.append(f"  - {_text(want, fields)}")
        if near is not None:
            lines.append(f"  + {_text(near, fields)}")
            rest.remove(near)
    lines += [f"  + {_text(each, fields)}" for each in rest[:SHOWN_MAX]]
    left_out = max(0, len(missing) - SHOWN_MAX) + max(0, len(rest) - SHOWN_MAX)
    return lines + ([f"  … and {left_out} more"] if left_out else [])


def _matches(want: dict[str, Any], found: dict[str, Any]) -> bool:
    return all(field in found and found[field] == value for field, value in want.items())


def _nearest(want: dict[str, Any], rest: list[dict[str, Any]], fields: set[str]) -> dict[str, Any] | None:
    """The one that was probably meant, to be shown below it."""
    texts = {_text(each, fields): each for each in rest}
    near = difflib.get_close_matches(_text(want, fields), texts, 1, cutoff=0.6)
    return texts[near[0]] if near else None


def _text(item: dict[str, Any], fields: set[str]) -> str:
    return json.dumps({key: value for key, value in item.items() if key in fields or not fields}, ensure_ascii=False)
