"""`ottla pipeline` as a user types it, on the shared session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline
from tests.support.servers.ottla_cli import run_cli

from ottla.testing import Broker


@pytest.fixture
def folder(tmp_path: Path, spark: Any) -> Path:
    assert run_cli("pipeline", "init", tmp_path / "shop").rc == 0
    return tmp_path / "shop"


def test_from_init_to_records_in_the_sink(folder: Path) -> None:
    with Broker() as broker:
        address = ("-b", broker.bootstrap_servers)
        broker.create_topic("orders", partitions=2)
        broker.create_topic("large-orders")
        assert "there is no topic orders-dead" in run_cli("pipeline", "run", folder, *address).err
        broker.create_topic("orders-dead")
        said = run_cli("pipeline", "validate", folder, *address)
        assert (said.rc, said.out) == (0, f"{folder} is valid: 1 flow.\n"), said.err
        for number in range(4):
            broker.produce(
                "orders", json.dumps({"id": number, "customer": "ann", "amount": 50.0 * number}), key="ann", partition=1
            )
        bad = ['{"id": "900002", "amount": 500}', "not json", '{"amount": 700, "coupon": "x"}']
        for value in bad:
            broker.produce("orders", value, partition=1)
        said = run_cli("pipeline", "run", folder, *address)
        assert (said.rc, said.out) == (0, "keep_large_orders\t7 rows\t1 batches\tlag 0\n"), said.err
        head = "ottla: the flow keep_large_orders: parsed_orders: "
        expected = (
            "2 of 7 records could not be decoded and are in the topic orders-dead: id must be int, not string (1, orders-1 at "
            "offset 4), the value is not valid JSON (1, orders-1 at offset 5); such as the value is not valid JSON: not json\n"
            "1 of 7 records differs from the schema: coupon is new (1, orders-1 at offset 6)\n"
            "1 of 5 rows does not meet the expectation has an id (id IS NOT NULL) and is in the topic orders-dead; such as "
            '{"amount":700.0}'
        )
        told = [line.removeprefix(head) for line in said.err.splitlines() if line.startswith(head)]
        assert told == expected.splitlines()
        letters = {each.value: dict(each.headers)["ottla.error.reason"] for each in broker.records("orders-dead")}
        assert letters == {
            bad[0].encode(): b"id is the string 900002: it must be int",
            b"not json": b"the value is not valid JSON: not json",
            b'{"amount":700.0}': b"has an id (id IS NOT NULL) is not met",
        }
        assert [json.loads(each.value or b"")["id"] for each in broker.records("large-orders")] == [2, 3]
        described = json.loads(run_cli("pipeline", "describe", folder, "--json", *address).out)
        assert [(each["flow"], each["reads"], each["position"]) for each in described["flows"]] == [
            ("orders", [], None),
            ("parsed_orders", ["orders"], None),
            ("keep_large_orders", ["parsed_orders"], "orders-0: 0, orders-1: 7"),
        ]
        assert described["isAnalysed"]
        assert described["flows"][2]["lag"] == 0
        assert described["flows"][0]["sources"][0]["options"]["subscribe"] == "orders"
        checks = {each["kind"]: (each["rows"], each["bad"]) for each in described["flows"][2]["checks"]}
        assert checks == {"decode": (7, 2), "drift": (7, 1), "nulls": (5, 0), "expect": (5, 1)}
        said = run_cli("pipeline", "describe", folder, *address)
        assert "parsed_orders expects has an id: id IS NOT NULL, else dead letter to orders-dead" in said.lines
        assert said.lines[-1].startswith("in all runs of keep_large_orders: parsed_orders: 1 of 5 rows does not meet")
        said = run_cli("pipeline", "run", folder, "--json", *address)
        assert json.loads(said.lines[-1])["flows"] == []
        said = run_cli("pipeline", "run", folder, "--reset", "--yes", "--json", *address)
        assert json.loads(said.lines[-1])["flows"][0]["rows"] == 7
        assert len(broker.records("large-orders")) == 4


def test_checkpoint_of_a_renamed_flow_is_not_left_behind_in_silence(folder: Path) -> None:
    """The new name would begin with a new checkpoint and write every record again."""
    with Broker() as broker:
        address = ("-b", broker.bootstrap_servers)
        for name in ("orders", "large-orders", "orders-dead"):
            broker.create_topic(name)
        broker.produce("orders", '{"id": 1, "amount": 500}')
        assert run_cli("pipeline", "run", folder, *address).rc == 0
        path = folder / "transformations" / "large_orders.py"
        path.write_text(path.read_text().replace("def keep_large_orders", "def keep_large"))
        said = run_cli("pipeline", "run", folder, *address)
        assert said.rc == 1
        assert said.err.startswith(
            "ottla: there is a checkpoint of keep_large_orders, which has read up to orders-0: 1, but no flow of that name. If "
            "it was renamed, its records would be read and written again: continue with --renamed keep_large_orders=keep_large "
        )
        said = run_cli("pipeline", "run", folder, "--renamed", "keep_large_orders=keep_large", *address)
        assert (said.rc, said.out.startswith("No new records")) == (0, True), said.err
        assert len(broker.records("large-orders")) == 1


COUNTED = """spark.readStream.table("a").groupBy({by}).count().selectExpr("CAST(count AS STRING) AS value")"""
PLAIN = """spark.readStream.table("a").select("value")"""
CHANGES = [
    (
        PLAIN,
        COUNTED.format(by="'key'"),
        "it now has an aggregation, and its checkpoint has no state: there was no such operator",
    ),
    (COUNTED.format(by="'key'"), PLAIN, "it had an aggregation and now has none."),
    (COUNTED.format(by="'partition'"), COUNTED.format(by="'key'"), "have changed, from (partition integer) to (key binary)."),
    (PLAIN, f"{PLAIN}.dropDuplicates(['value'])", "it now has dropDuplicates, and its checkpoint has no state"),
    (PLAIN, f"{PLAIN}.union({PLAIN})", "it read 1 source and now reads 2 sources."),
    (
        "spark.readStream.format('rate').load().selectExpr('CAST(value AS STRING) AS value')",
        PLAIN,
        "reads another kind of source",
    ),
    (
        PLAIN,
        "spark.readStream.format('rate').load().selectExpr('CAST(value AS STRING) AS value')",
        "reads another kind of source",
    ),
]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        pytest.param(*each, id=f"change-{number}", marks=[pytest.mark.slow] * (number != 4))
        for number, each in enumerate(CHANGES)
    ],
)
def test_query_that_its_checkpoint_cannot_take_names_what_changed_and_reset(
    tmp_path: Path, spark: Any, shared_broker: Broker, topic: str, before: str, after: str, why: str
) -> None:
    given = f"sources: {{a: {{subscribe: {topic}, startingOffsets: earliest}}}}\nsinks: {{out: {{topic: {topic}-out}}}}\n"
    shared_broker.create_topic(f"{topic}-out")
    for query in (before, after):
        shared_broker.produce(topic, "v")
        mode = ', spark_conf={"ottla.outputMode": "update"}' if "count()" in query else ""
        text = f'@dp.append_flow(target="out"{mode})\ndef f():\n    return {query}\n'
        write_pipeline(tmp_path, {"flows.py": text}, given, shared_broker.bootstrap_servers)
        said = run_cli("pipeline", "run", tmp_path)
        assert said.rc == (query == after), said.err
    assert said.err.startswith("ottla: the flow f cannot continue from its checkpoint: "), said.err
    assert why in said.err
    assert "Take the change back, or read everything again with --reset f. " in said.err
    assert "…" not in said.err
    assert run_cli("pipeline", "run", tmp_path, "--reset", "f", "--yes").rc == 0


def test_broken_flow_ends_with_one_sentence_and_a_log(folder: Path) -> None:
    text = (folder / "transformations" / "large_orders.py").read_text()
    broken = text.replace('.where("amount >= 100")', ".where(\"assert_true(amount > 0, 'bad amount') IS NULL\")")
    (folder / "transformations" / "large_orders.py").write_text(broken)
    with Broker() as broker:
        broker.create_topic("orders")
        broker.create_topic("large-orders")
        broker.create_topic("orders-dead")
        broker.produce("orders", '{"id": 1, "amount": -5}')
        said = run_cli("pipeline", "run", folder, "-b", broker.bootstrap_servers)
    log = folder / "storage" / "ottla" / "spark.log"
    assert said.rc == 1
    assert said.err == f"ottla: the flow keep_large_orders broke at orders-0 offset 0: bad amount. {log} has the trace\n"
    assert "=== Streaming Query ===" in log.read_text()


@pytest.mark.slow
def test_test_of_a_pipeline_that_fails_shows_the_differences(folder: Path) -> None:  # test_page.py has one that passes
    expected = folder / "tests" / "large-orders-only" / "expected" / "large-orders.jsonl"
    expected.write_text(expected.read_text().replace("250.0", "251.0"))
    said = run_cli("pipeline", "test", folder, "--json")
    assert said.rc == 1
    (result,) = json.loads(said.out)
    assert result["differences"] == [
        "large-orders: 2 expected, 2 found",
        '  - {"key": "bob", "value": {"id": 2, "customer": "bob", "amount": 251.0}}',
        '  + {"key": "bob", "value": {"id": 2, "customer": "bob", "amount": 250.0}}',
    ]


TWO_FLOWS = """
@dp.append_flow(target="out")
def copy():
    return spark.readStream.table("orders").selectExpr("key", "value")

@dp.table
def kept():
    return spark.readStream.table("orders").selectExpr("offset")
"""


def test_backfill_writes_its_range_once(tmp_path: Path, spark: Any, shared_broker: Broker) -> None:
    ottla = "sources: {orders: {subscribe: bf-in, startingOffsets: latest}}\nsinks: {out: {topic: bf-out, exactlyOnce: true}}\n"
    shared_broker.create_topic("bf-in")
    shared_broker.create_topic("bf-out")
    write_pipeline(tmp_path, {"flows.py": TWO_FLOWS}, ottla, shared_broker.bootstrap_servers)
    for number in range(6):
        shared_broker.produce("bf-in", f"v{number}", timestamp=1000 * (number + 1))
    command = ("pipeline", "backfill", tmp_path, "--from", "2000", "--to", "5000", "--json")
    for _ in range(2):
        said = run_cli(*command)
        assert said.rc == 0, said.err
        assert [each.value for each in shared_broker.records("bf-out")] == [b"v1", b"v2", b"v3"]
    assert json.loads(said.lines[-1])["flows"] == []
    assert "the flow kept is left out: kept is a table of files" in said.err
    # The pipeline's own offsets are untouched, and the terminal shows no trace of Java's.
    assert not (tmp_path / "storage" / "ottla" / "checkpoints").exists()
    said = run_cli("pipeline", "backfill", tmp_path, "kept", "--from", "earliest", "--to", "latest")
    assert said.rc == 1
    assert said.err.splitlines()[-1].startswith("ottla: the flow kept cannot be filled: kept is a table of files")
    beyond = ("--from", "earliest", "--to", '{"bf-in": {"0": 99}}')
    said = run_cli("pipeline", "backfill", tmp_path, *beyond)
    assert said.err == "ottla: --to is 99 for bf-in-0, which ends at offset 6: give that or less\n"


def test_column_that_is_not_there_is_one_sentence_without_json(tmp_path: Path, spark: Any) -> None:
    text = "@dp.table\ndef t():\n    return spark.readStream.format('rate').load().select('nope')\n"
    write_pipeline(tmp_path, {"flows.py": text})
    said = run_cli("pipeline", "validate", tmp_path)
    assert said.rc == 1
    assert said.err.count("\n") == 1, said.err
    assert "\tat org.apache.spark" in (tmp_path / "storage" / "ottla" / "spark.log").read_text()
