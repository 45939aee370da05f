"""`make bench-clients`: options, comparisons, tables, and the documents that show the kept run."""

import pytest
from bench import readme
from bench import report as documents
from bench.clients import broker, consume, latency, produce, report
from bench.clients.__main__ import main
from bench.clients.cases import CASES, CONSUME, LATENCY, PRODUCE, Case, filled_records
from bench.clients.results import ClientResults, comparisons, missing

FACTS = {
    "python": "3.11",
    "system": "Linux",
    "cpu": "a CPU",
    "memory": "8 GB",
    "kafka": "4.3.0",
    "confluent-kafka": "2",
    "aiokafka": "0.1",
    "kafka-python": "3",
}


def figures(rate: float, peak: float = 50.0) -> dict[str, float]:
    return {"rate": rate, "cpu_us": 1.0, "broker_us": 0.5, "peak_mb": peak}


@pytest.fixture
def results() -> ClientResults:
    found = ClientResults(FACTS)
    for mine, confluent, aiokafka in ((900_000, 300_000, 310_000), (800_000, 400_000, 40_000), (1_500_000, 500_000, 50_000)):
        found.add("produce", "100 B", "Ottla send_many", figures(mine))
        found.add("produce", "100 B", "confluent-kafka", figures(confluent))
        found.add("produce", "100 B", "aiokafka", figures(aiokafka, 30.0))
    found.add("produce", "100 B", "Ottla send", figures(600_000, 45.0))
    found.add("consume", "1 KB, keys", "Ottla asyncio", figures(1_000))
    found.add("consume", "1 KB, keys", "aiokafka", figures(1_000))
    for client, p99 in (("Ottla", 2.0), ("kafka-python", 4.0), ("confluent-kafka", 1.0)):
        found.add_latency(client, {"delivery_p50_ms": 0.5, "delivery_p99_ms": p99, "waited_p50_ms": p99})
    return found


def test_each_round_is_compared_with_its_best(results: ClientResults) -> None:
    rows = {row.key: row for row in comparisons(results)}
    many = rows["produce:Ottla send_many:100 B"]
    assert many.others == [310, 400, 500]
    assert (many.other_name, many.ratio, many.verdict) == ("confluent-kafka", pytest.approx(900 / 310), "missed by 3%")
    assert rows["produce:Ottla send:100 B"].verdict == "reached"
    assert rows["consume:Ottla asyncio:1 KB, keys"].verdict == "missed by 33%"
    memory = rows["produce:memory:100 B"]
    assert (memory.other_name, memory.ratio, memory.verdict) == ("aiokafka", 1.5, "")
    late = rows["latency:delivery_p99_ms"]
    assert (late.other_name, late.ratio, late.verdict) == ("confluent-kafka", 2.0, "")
    waited = rows["latency:waited_p50_ms"]
    assert (waited.other_name, waited.ratio, waited.verdict) == ("confluent-kafka", 2.0, "missed by 100%")
    assert len(rows) == 6


def test_documents_show_the_kept_run() -> None:
    shown = documents.DETAIL.read_text(encoding="utf-8")
    measured = readme.with_block(documents.DETAIL, report.detail_block(report.load()), report.BEGIN, report.END)
    assert measured == shown, "python -m bench.clients.report"


def test_rows_of_a_full_run() -> None:
    full = ClientResults(FACTS)
    for case in CASES:
        for use in PRODUCE:
            full.add("produce", case.label, use.name, figures(1))
        for use in CONSUME:
            full.add("consume", case.label, use.name, figures(1))
    for client in LATENCY:
        full.add_latency(client, {"delivery_p99_ms": 1.0, "end_p99_ms": 1.0, "waited_p50_ms": 1.0})
    assert missing(full) == []
    keys = {row.key for row in comparisons(full)}
    assert {key for name, key in readme.ROWS if name == "clients"} <= keys
    del full.consume["100 B"]["kafka-python"]
    assert missing(full) == ["consume 100 B kafka-python"]


def test_every_use_has_its_function() -> None:
    assert {use.name for use in PRODUCE} == set(produce.USES)
    assert {use.name for use in CONSUME} == set(consume.USES)
    assert set(LATENCY) == set(latency.PRODUCERS) == set(latency.CONSUMERS) == set(latency.WAITERS)
    assert filled_records(Case(100, False), 0.1) > max(use.count(Case(100, False), 0.1) for use in CONSUME)


@pytest.mark.slow
def test_a_quick_run_measures_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    with broker.BenchBroker() as served:
        assert served.cpu_s() >= 0
    chosen = ["--only", "Ottla send;Ottla Arrow;Ottla poll;Ottla;kafka-python;raw protocol", "--cases", "100 B"]
    assert main(["--quick", *chosen]) == 0
    shown = capsys.readouterr().out
    assert "raw protocol" in shown
    for text in ("produce 100 B, one by one", "produce 100 B, Arrow table", "consume 100 B, poll", "send to consumer, p99"):
        assert text in shown
