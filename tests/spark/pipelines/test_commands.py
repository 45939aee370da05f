"""`ottla pipeline` as a user types it, on the shared session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
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
        said = run_cli("pipeline", "validate", folder, *address)
        assert (said.rc, said.out) == (0, f"{folder} is valid: 1 flows.\n"), said.err
        for number in range(4):
            broker.produce(
                "orders", json.dumps({"id": number, "customer": "ann", "amount": 50.0 * number}), key="ann", partition=1
            )
        said = run_cli("pipeline", "run", folder, *address)
        assert (said.rc, said.out) == (0, "keep_large_orders\t4 rows\t1 batches\tlag 0\n"), said.err
        assert [json.loads(each.value or b"")["id"] for each in broker.records("large-orders")] == [2, 3]
        described = json.loads(run_cli("pipeline", "describe", folder, "--json", *address).out)
        assert [(each["flow"], each["reads"], each["position"]) for each in described["flows"]] == [
            ("orders", [], None),
            ("parsed_orders", ["orders"], None),
            ("keep_large_orders", ["parsed_orders"], "orders-0: 0, orders-1: 4"),
        ]
        assert described["flows"][0]["sources"][0]["options"]["subscribe"] == "orders"
        said = run_cli("pipeline", "describe", folder, *address)
        assert said.lines[-1].split("  ")[-1].strip().endswith("orders-1: 4")
        said = run_cli("pipeline", "run", folder, "--json", *address)
        assert json.loads(said.lines[-1])["flows"] == []
        said = run_cli("pipeline", "run", folder, "--reset", "--yes", "--json", *address)
        assert json.loads(said.lines[-1])["flows"][0]["rows"] == 4
        assert len(broker.records("large-orders")) == 4


def test_broken_flow_ends_with_one_sentence_and_a_log(folder: Path) -> None:
    text = (folder / "transformations" / "large_orders.py").read_text()
    broken = text.replace('.where("amount >= 100")', ".where(\"assert_true(amount > 0, 'bad amount') IS NULL\")")
    (folder / "transformations" / "large_orders.py").write_text(broken)
    with Broker() as broker:
        broker.create_topic("orders")
        broker.create_topic("large-orders")
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
