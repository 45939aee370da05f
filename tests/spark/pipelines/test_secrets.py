"""Secrets of the YAML files are in nothing that a pipeline shows or writes, also if its data or its errors have them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline
from tests.support.servers.ottla_cli import run_cli

from ottla.spark.pipelines.counts import Check
from ottla.spark.pipelines.metrics import RunMetrics
from ottla.spark.pipelines.resolution import prepared
from ottla.spark.pipelines.run import Run
from ottla.spark.pipelines.spec import Schedule
from ottla.testing import Broker

WORDS = ("f1le-s3cret", "v4riable-s3cret", "h00k-s3cret")
GIVEN = """sources:
  orders:
    subscribe: TOPIC
    startingOffsets: earliest
    kafka.sasl.jaas.config: >-
      org.apache.kafka.common.security.plain.PlainLoginModule required username="shop" password="${file:secret.txt}";
sinks: {out: {topic: TOPIC-out, kafka.client.id: "${SHOP_TOKEN}"}}
on_failure: {command: [tee, "${file:hook.txt}-TOPIC"]}
"""
FLOW = """
from ottla.spark import decode
from ottla.spark.pipelines import expect
@dp.append_flow(target="out")
@expect("short", "length(value) < 3")
def copy():
    orders = decode(spark.readStream.table("orders"), value="json", schema="id INT, name STRING", mode="drop")
    return orders.selectExpr("concat(value.name, FAIL) AS value")
"""


@pytest.fixture
def folder(tmp_path: Path, topic: str, shared_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline whose data holds its secrets: in a bad record, a new field, and a row that breaks an expectation."""
    monkeypatch.setenv("SHOP_TOKEN", WORDS[1])
    (tmp_path / "secret.txt").write_text(WORDS[0] + "\n")
    (tmp_path / "hook.txt").write_text(f"{tmp_path}/{WORDS[2]}\n")
    shared_broker.create_topic(f"{topic}-out")
    values = [
        {"id": WORDS[0], "name": "x"},
        {"id": 1, WORDS[0]: 5},
        {"id": 1, "name": f"long {WORDS[1]}"},
        {"id": f"login {WORDS[1]}"},
    ]
    for value in values:
        shared_broker.produce(topic, json.dumps(value))
    write(tmp_path, shared_broker, topic, "''")
    return tmp_path


def write(folder: Path, broker: Broker, topic: str, failing: str) -> None:
    files = {"flows.py": FLOW.replace("FAIL", failing)}
    write_pipeline(folder, files, GIVEN.replace("TOPIC", topic), broker.bootstrap_servers)


def shown_in(text: str) -> list[str]:
    return [word for word in WORDS if word in text]


def written(folder: Path) -> Iterator[tuple[Path, str]]:
    """What a pipeline has written into its storage, and what the hook has got."""
    for path in [*folder.rglob("storage/**/*"), *folder.glob("*-s3cret-*")]:
        if path.is_file() and "warehouse" not in path.parts:
            yield path, path.read_text(encoding="utf-8", errors="replace")


def test_secrets_are_in_no_output_count_metric_hook_or_error(
    folder: Path, spark: Any, shared_broker: Broker, topic: str
) -> None:
    for command in ("run", "describe", "validate"):
        for flags in ((), ("--json",)) if command == "describe" else ((),):
            said = run_cli("pipeline", command, folder, *flags)
            assert said.rc == 0, said.err
            assert shown_in(said.out + said.err) == [], command
            assert command != "run" or ("could not be decoded" in said.err and "***" in said.err)
    write(folder, shared_broker, topic, "raise_error(concat(value.name, ' failed'))")
    shared_broker.produce(topic, json.dumps({"id": 1, "name": WORDS[1]}))
    said = run_cli("pipeline", "run", folder)
    assert (said.rc, "the flow copy broke" in said.err, "*** failed" in said.err) == (1, True, True)
    assert shown_in(said.err) == []
    assert "*** failed" in next(folder.glob("*-s3cret-*")).read_text()
    for path, text in written(folder):
        assert shown_in(text) == [], path


def test_metrics_have_no_secrets(folder: Path, spark: Any) -> None:
    from ottla.spark.pipelines.spec import read_spec

    spec = read_spec(folder)
    with prepared(spec, spark) as resolved:
        run, metrics = Run(resolved, spark, Schedule()), RunMetrics(spec.name)
        metrics.follow(run)
        run._count_checks("copy", "q", 0, [Check("copy", "drift", WORDS[0], "warn", 2, 1, reasons={f"{WORDS[1]} is new": 1})])
        assert shown_in(metrics.text().decode()) == []


@pytest.mark.slow
def test_secrets_are_not_in_sparks_log(folder: Path, shared_broker: Broker, topic: str) -> None:
    write(folder, shared_broker, topic, "raise_error(concat(value.name, ' failed'))")
    command = [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1, done.stderr
    assert shown_in(done.stdout + done.stderr) == []
    assert "*** failed" in (folder / "storage" / "ottla" / "spark.log").read_text()
    for path, text in written(folder):
        assert shown_in(text) == [], path
