"""`ottla perf` compared with Kafka's perf tools: the same lines, but for the digits."""

import re

import pytest
from tests.compat.cli.conftest import RunOttla, RunTool

PRODUCER, CONSUMER, LATENCY = (
    f"org.apache.kafka.tools.{name}" for name in ("ProducerPerformance", "ConsumerPerformance", "EndToEndLatency")
)

IMPORTANT = {
    "batch-size-avg",
    "buffer-available-bytes",
    "byte-rate",
    "compression-rate-avg",
    "outgoing-byte-rate",
    "record-error-total",
    "record-queue-time-avg",
    "record-retry-total",
    "record-send-rate",
    "request-latency-avg",
    "request-latency-max",
    "requests-in-flight",
}


def shape(line: str) -> str:
    """A line with # for whole numbers, and with as many # after the point as there are digits."""
    line = re.sub(r"\d+\.(\d+)", lambda found: f"N.{'#' * len(found[1])}", line)
    return re.sub(r"\bInfinity|NaN\b", "N.####", re.sub(r"\b\d+", "#", line))


@pytest.fixture
def created(ottla: RunOttla, topic: str) -> str:
    assert ottla("topics", "create", topic, "--partitions", 1).rc == 0
    return topic


def test_produce_prints_kafkas_lines(ottla: RunOttla, kafka: RunTool, created: str, bootstrap: str) -> None:
    size = ("--num-records", 400, "--record-size", 20, "--throughput", 400)
    flags = ("--topic", created, *size, "--warmup-records", 100, "--reporting-interval", 300)
    ours = ottla("producer-perf-test", "--bootstrap-server", bootstrap, *flags)
    theirs = kafka(PRODUCER, *flags)
    assert (ours.rc, theirs.rc) == (0, 0), (ours.err, theirs.err)
    # How many intervals there are, before and in the steady state, depends on the machine.
    assert set(map(shape, ours.lines)) == set(map(shape, theirs.lines))
    assert [ours.lines[0], *map(shape, ours.lines[-2:])] == [theirs.lines[0], *map(shape, theirs.lines[-2:])]


def test_produce_prints_kafkas_metrics(ottla: RunOttla, kafka: RunTool, created: str, bootstrap: str) -> None:
    flags = ("--topic", created, "--num-records", 10, "--payload-monotonic", "--throughput", -1, "--print-metrics")
    ours = ottla("producer-perf-test", "--bootstrap-server", bootstrap, *flags)
    theirs = kafka(PRODUCER, *flags)
    names = [
        {line.rpartition(" : ")[0].rstrip() for line in said.lines if line.startswith("producer-")} for said in (ours, theirs)
    ]
    per_node = {name for name in names[0] if name.startswith("producer-node-metrics")}  # nodes are asked in another order
    assert names[0] - names[1] - per_node == set()
    assert {name.split(":")[1] for name in names[0]} >= IMPORTANT
    for said in (ours, theirs):
        header = next(line for line in said.lines if line.startswith("Metric Name"))
        row = next(line for line in said.lines if line.startswith("producer-metrics:record-send-total"))
        assert header.index("Value") == row.index(" : ") + 3
        assert row.endswith(" : 10.000")


def test_consume_prints_kafkas_lines(ottla: RunOttla, kafka: RunTool, created: str, bootstrap: str) -> None:
    assert ottla("perf", "produce", created, "--num-records", 2000).rc == 0
    for flags in (
        ("--topic", created, "--num-records", 1500, "--timeout", 60000),
        (
            "--topic",
            created,
            "--messages",
            2000,
            "--timeout",
            60000,
            "--hide-header",
            "--date-format",
            "yyyy-MM-dd'T'HH:mm:ss.SSS",
        ),
        ("--include", created, "--num-records", 2001, "--timeout", 2000),
    ):
        ours, theirs = ottla("consumer-perf-test", "--bootstrap-server", bootstrap, *flags), kafka(CONSUMER, *flags)
        expected = [shape(line) for line in theirs.lines if not line.startswith("Warning: --messages is deprecated")]
        assert (ours.rc, list(map(shape, ours.lines))) == (theirs.rc, expected), theirs.err
    detailed = ("--topic", created, "--num-records", 2000, "--show-detailed-stats", "--reporting-interval", 1)
    ours, theirs = ottla("consumer-perf-test", "--bootstrap-server", bootstrap, *detailed), kafka(CONSUMER, *detailed)
    assert set(map(shape, ours.lines)) == set(map(shape, theirs.lines))
    assert ours.lines[0] == theirs.lines[0]


def test_latency_prints_kafkas_lines(ottla: RunOttla, kafka: RunTool, topic: str, bootstrap: str) -> None:
    flags = ("--num-records", 3, "--producer-acks", "all", "--record-size", 10, "--record-key-size", 3)
    ours = ottla("e2e-latency", "--bootstrap-server", bootstrap, "--topic", f"{topic}-a", *flags)
    theirs = kafka(LATENCY, "--topic", f"{topic}-b", *flags)
    assert (ours.rc, theirs.rc) == (0, 0), (ours.err, theirs.err)
    assert ours.lines[0] == theirs.lines[0].replace(f"{topic}-b", f"{topic}-a")
    assert re.fullmatch(r"0\t\d+\.\d+", ours.lines[1])
    assert re.fullmatch(r"0\t\d+\.\d+", theirs.lines[1])
    assert list(map(shape, ours.lines[2:])) == list(map(shape, theirs.lines[2:]))


def test_transactional_records_are_seen_by_read_committed_readers(
    ottla: RunOttla, kafka: RunTool, created: str, bootstrap: str
) -> None:
    flags = (
        "--topic",
        created,
        "--num-records",
        200,
        "--record-size",
        10,
        "--throughput",
        1000,
        "--transaction-duration-ms",
        50,
    )
    ours = ottla("producer-perf-test", "--bootstrap-server", bootstrap, *flags)
    assert ours.rc == 0, ours.err
    read = kafka(CONSUMER, "--topic", created, "--num-records", 200, "--command-property", "isolation.level=read_committed")
    assert ", 200, " in read.lines[1]
