"""What is found before Spark starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.spark.pipelines.folders import write_pipeline

from ottla.errors import UnreachableError
from ottla.spark.pipelines import checks
from ottla.testing import Broker


@pytest.mark.parametrize(
    ("ottla", "sentence"),
    [
        ("sources: {orders: {subscribe: orders, startingOfsets: earliest}}", "ottla.yml: orders: startingOfsets is no option"),
        ("sources: {orders: {startingOffsets: earliest}}", "give one of subscribe, subscribePattern and assign"),
        ("sources: {orders: {subscribe: a, endingOffsets: latest}}", "endingOffsets is for batch reads"),
        ("sinks: {out: {topik: x}}", "did you mean topic?"),
        ("sources: {x: {subscribe: a}}\nsinks: {x: {topic: b}}", "x is both a source and a sink"),
    ],
)
def test_wrong_option_is_named(tmp_path: Path, ottla: str, sentence: str) -> None:
    (problem,) = checks.option_problems(write_pipeline(tmp_path, {"a.py": ""}, ottla))
    assert sentence in problem


def test_options_of_other_formats_are_not_judged(tmp_path: Path) -> None:
    assert checks.option_problems(write_pipeline(tmp_path, {"a.py": ""}, "sources: {x: {format: rate, anything: 1}}")) == []


def test_missing_topics_are_named_with_what_is_there(tmp_path: Path, shared_broker: Broker) -> None:
    shared_broker.create_topic("pipeline-check-orders")
    ottla = "sources: {a: {subscribe: 'pipeline-check-orders,pipeline-check-order'}}\nsinks: {b: {topic: zzz}}"
    spec = write_pipeline(tmp_path, {"a.py": ""}, ottla, shared_broker.bootstrap_servers)
    near, far = checks.topic_problems(checks.topics_wanted(spec), lambda client: shared_broker.topics())
    assert near.startswith(
        f"there is no topic pipeline-check-order at {shared_broker.bootstrap_servers}: did you mean pipeline-check-orders?"
    )
    assert "create it with `ottla topics create zzz`; there are " in far


def test_cluster_that_is_away_is_named() -> None:
    def refuse(client: Mapping[str, str]) -> list[str]:
        raise UnreachableError(f"{client['request.timeout.ms']} ms were not enough")

    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.request.timeout.ms": "1000", "subscribe": "x"}
    (problem,) = checks.topic_problems({"x": options, "y": options}, refuse)
    assert problem == "the cluster at 127.0.0.1:1 does not answer: 1000 ms were not enough"
