"""`ottla pipeline test`."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from typing import Any

import click

from ottla.cli.common.options import json_option
from ottla.cli.common.output import print_json, say
from ottla.cli.pipeline.cases import Case, check_records, from_bytes, normal, read_cases, to_bytes
from ottla.cli.pipeline.comparing import compare
from ottla.cli.pipeline.options import environment_options, pipeline_argument, session_for
from ottla.errors import OttlaError
from ottla.spark.pipelines import checks
from ottla.spark.pipelines.environments import Environment
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.schedule import Schedule
from ottla.spark.pipelines.spec import Spec, read_spec

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
    from ottla.spark.pipelines.resolving import prepared, quoted
    from ottla.spark.pipelines.running import Run

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
