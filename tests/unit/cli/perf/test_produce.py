"""`ottla perf produce` against a broker: lines, transactions, failures, Ctrl-C."""

import json
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import click
import pytest
from ottla.cli.perf.payloads import POOL_VALUES_MAX, Counted, Pool, file_payloads, random_payloads
from ottla.cli.perf.send_statistics import HEADINGS, SendStatistics
from ottla.cli.perf.sending import GROUP_BYTES_MAX, GROUP_RECORDS_MAX, Sending, SendPlan
from tests.unit.cli.real_broker import RunOttla

from ottla.client_core.producer.batch import ProducerBatch
from ottla.errors import InvalidRecordError, NetworkError
from ottla.records.kernels import BufferMemory
from ottla.testing import Broker

TOTAL = re.compile(
    r"(\d+) (steady state )?records sent, \d+\.\d{6} records/sec \(\d+\.\d\d MB/sec\), \d+\.\d\d ms avg latency, "
    r"\d+\.\d\d ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)


def stored(broker: Broker, topic: str, count: int) -> list[bytes]:
    return [record.value or b"" for record in broker.await_records(topic, count)]


def test_records_are_stored_and_counted(ottla: RunOttla, broker: Broker, topic: str) -> None:
    said = ottla("perf", "produce", topic, "--num-records", 2000, "--record-size", 30)
    assert (said.rc, said.err) == (0, "")
    (line,) = said.lines
    assert (TOTAL.fullmatch(line) or [""])[1] == "2000"
    values = stored(broker, topic, 2000)
    assert len(values) == 2000
    assert {len(value) for value in values} == {30}


def test_kafkas_spelling_gives_warmup_windows_and_metrics(
    ottla: RunOttla, broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS")
    props = ("--producer-props", f"bootstrap.servers={broker.bootstrap_servers}", "acks=all", "--print-metrics")
    size = (
        "--num-records",
        300,
        "--record-size",
        10,
        "--throughput",
        1000,
        "--warmup-records",
        100,
        "--reporting-interval",
        20,
    )
    said = ottla("producer-perf-test", "--topic", topic, *size, *props)
    assert said.rc == 0, said.err
    assert said.lines[0] == "Warmup first 100 records. Steady state results will print after the complete test summary."
    assert said.lines.count("In steady state.") == 1
    totals = [match for line in said.lines if (match := TOTAL.fullmatch(line))]
    assert [match[1] for match in totals] == ["300", "200"]
    windows = [line for line in said.lines if re.match(r"\d+ records sent, \d+\.\d records/sec", line)]
    assert windows
    assert re.search(r"^producer-metrics:record-send-total:\{client-id=perf-producer-client\} +: 300\.000$", said.out, re.M)


def test_values_of_a_file_and_numbers(ottla: RunOttla, broker: Broker, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "payloads.txt"
    path.write_text("one,two,three")
    said = ottla(
        "perf", "produce", topic, "--num-records", 50, "--payload-file", path, "--payload-delimiter", ",", "--throughput", -1
    )
    assert said.lines[:2] == [f"Reading payloads from: {path}", "Number of records read: 3"]
    assert set(stored(broker, topic, 50)) == {b"one", b"two", b"three"}
    assert ottla("perf", "produce", topic, "--num-records", 3, "--payload-monotonic").rc == 0
    assert {b"0", b"1", b"2"} <= set(stored(broker, topic, 53))


def test_transactions_are_committed(ottla: RunOttla, broker: Broker, topic: str) -> None:
    flags = ("--transaction-duration-ms", 20, "--transactional-id", "perf-test")
    said = ottla("perf", "produce", topic, "--num-records", 60, "--throughput", 600, *flags)
    assert said.rc == 0, said.err
    assert len(stored(broker, topic, 60)) == 60
    listed = json.loads(ottla("transactions", "describe", "perf-test", "--json").out)
    assert "CompleteCommit" in json.dumps(listed)


def test_json_and_table_have_the_numbers(ottla: RunOttla, topic: str) -> None:
    found = json.loads(ottla("perf", "produce", topic, "--num-records", 500, "--warmup-records", 100, "--json").out)
    assert (found["topic"], found["records"], found["bytes"], found["failed"]) == (topic, 500, 50_000, 0)
    assert found["steadyState"]["records"] == 400
    table = ottla("perf", "produce", topic, "--num-records", 500, columns=120)
    assert f"Sent to {topic}" in table.out
    assert next(line for line in table.lines if line.startswith("all")).split()[1] == "500"


def test_records_that_are_not_stored_end_with_1(ottla: RunOttla, broker: Broker, topic: str) -> None:
    assert ottla("configs", "alter", "topic", topic, "--set", "max.message.bytes=100").rc == 0
    said = ottla("perf", "produce", topic, "--num-records", 3, "--record-size", 200)
    assert said.rc == 1
    assert "0 records sent" in said.out
    assert "3 records were not stored: " in said.err


def test_ctrl_c_shows_what_was_stored(ottla: RunOttla, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    send = Sending._send

    def interrupted(self: Sending, due: int | None) -> float:
        started = send(self, due)
        self.wait()
        raise KeyboardInterrupt(started)

    monkeypatch.setattr(Sending, "_send", interrupted)
    said = ottla("perf", "produce", topic, "--num-records", 5000)
    assert said.rc == 130
    assert TOTAL.fullmatch(said.lines[-1])
    assert said.lines[-1].startswith("500 records sent")


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (("--record-size", 1, "--payload-monotonic"), "--record-size and --payload-monotonic both say what to send"),
        (("--num-records", 5, "--warmup-records", 5), "--warmup-records must be less than --num-records"),
        (("--throughput", 0), "--throughput 0 would never send anything"),
        (("--command-property", "acks=7"), "acks"),
        (("--command-property", "linger"), "takes KEY=VALUE"),
    ],
)
def test_flags_that_make_no_sense_are_refused(ottla: RunOttla, flags: tuple[object, ...], fault: str) -> None:
    said = ottla("perf", "produce", "x", *flags)
    assert (said.rc, said.out) == (2, "")
    assert fault in said.err


def test_pool_begins_again_after_its_end() -> None:
    pool = Pool([b"a", b"b", b"c"])
    assert [list(pool.take(2)) for _ in range(3)] == [[b"a", b"b"], [b"c"], [b"a", b"b"]]


def test_random_values_are_letters_and_the_same_in_every_run() -> None:
    values = random_payloads(20, 1000).take(1000)
    assert len(set(values)) == 1000
    assert all(len(value) == 20 and value.isalpha() and value.isupper() for value in values)
    assert list(random_payloads(20, 1000).take(1000)) == list(values)


def test_pool_is_bounded_however_many_records_are_sent() -> None:
    assert len(random_payloads(1, 10**9).take(10**9)) == POOL_VALUES_MAX
    assert len(random_payloads(100_000_000, 10**9).take(5)) == 1


def test_counted_values_go_on() -> None:
    numbers = Counted()
    assert [*numbers.take(2), *numbers.take(1)] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("content", "delimiter", "parts"),
    [
        (b"a\nb\r\n", "\\n", {b"a", b"b\r"}),
        (b"a,b,c,,", ",", {b"a", b"b", b"c"}),
        (b"a1b22c", "[0-9]+", {b"a", b"b", b"c"}),
        (b"\xff\x00\n", "\\n", {b"\xff\x00"}),
    ],
)
def test_file_is_split_by_a_regular_expression(tmp_path: Path, content: bytes, delimiter: str, parts: set[bytes]) -> None:
    path = tmp_path / "payloads"
    path.write_bytes(content)
    pool, count = file_payloads(str(path), delimiter, 1000)
    assert (set(pool.take(1000)), count) == (parts, len(parts))


@pytest.mark.parametrize(
    ("content", "delimiter", "fault"),
    [(None, ",", "cannot be read"), (b"", ",", "is empty"), (b"\n\n", "\\n", "only delimiters"), (b"a", "(", "expression")],
)
def test_file_without_values_is_refused(tmp_path: Path, content: bytes | None, delimiter: str, fault: str) -> None:
    path = tmp_path / "payloads"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(click.UsageError, match=fault):
        file_payloads(str(path), delimiter, 1)


def filled(is_steady: bool = False) -> SendStatistics:
    statistics = SendStatistics(100.0, is_steady)
    statistics.add(98, 98 * 1024 * 1024, 10)
    statistics.add(2, 2 * 1024 * 1024, 30)
    return statistics


def test_total_is_kafkas_line() -> None:
    assert filled().total_line(102.0) == (
        "100 records sent, 50.000000 records/sec (50.00 MB/sec), 10.40 ms avg latency, 30.00 ms max latency, "
        "10 ms 50th, 10 ms 95th, 30 ms 99th, 30 ms 99.9th."
    )
    assert filled(is_steady=True).total_line(102.0).startswith("100 steady state records sent, 50.000000 records/sec")


def test_window_has_only_what_came_since_the_last_one() -> None:
    statistics = filled()
    assert statistics.take_window(102.0) == [
        "100 records sent, 50.0 records/sec (50.00 MB/sec), 10.4 ms avg latency, 30.0 ms max latency."
    ]
    statistics.add(1, 0, 5)
    assert statistics.take_window(103.0) == [
        "1 records sent, 1.0 records/sec (0.00 MB/sec), 5.0 ms avg latency, 5.0 ms max latency."
    ]
    assert statistics.total.records == 101


def test_first_window_of_the_steady_state_is_announced() -> None:
    statistics = filled(is_steady=True)
    assert statistics.take_window(102.0)[0] == "In steady state."
    statistics.add(1, 0, 5)
    assert len(statistics.take_window(103.0)) == 1


def test_run_without_records_has_javas_numbers() -> None:
    assert "0 records sent, NaN records/sec (NaN MB/sec), NaN ms avg" in SendStatistics(1.0).total_line(1.0)


def test_row_and_json_have_the_same_numbers() -> None:
    assert filled().row(102.0) == ("all", "100", "50", "50.0", "10.4", 30, 10, 10, 30, 30)
    assert len(filled().row(102.0)) == len(HEADINGS)
    assert filled().as_json(102.0) == {
        "records": 100,
        "bytes": 100 * 1024 * 1024,
        "seconds": 2.0,
        "recordsPerSec": 50.0,
        "mbPerSec": 50.0,
        "latencyMs": {"avg": 10.4, "max": 30, "p50": 10, "p95": 10, "p99": 30, "p999": 30},
    }


class FakeDelivery:
    def __init__(self, batch: ProducerBatch) -> None:
        self.batch = batch


class FakeProducer:
    """Batches of three records. `finish` completes or fails what is in them."""

    def __init__(self) -> None:
        self.batches: list[ProducerBatch] = []
        self.groups: list[int] = []
        self.is_quick = False
        self.error: Any = None

    def send_many(self, topic: str, values: Sequence[bytes]) -> list[FakeDelivery]:
        self.groups.append(len(values))
        handles = []
        for value in values:
            if not self.batches or self.batches[-1].count == 3:
                self.batches.append(ProducerBatch((topic, 0), BufferMemory(1 << 20), 1 << 12, 1 << 16, 0, None))
            self.batches[-1].append(0, None, value, b"\x00", None)
            handles.append(FakeDelivery(self.batches[-1]))
        if self.is_quick:
            self.flush(None)
        return handles

    def flush(self, timeout: float | None) -> None:
        for batch in self.batches:
            if not batch.is_done and self.error is None:
                batch.complete(0, -1)
            elif not batch.is_done:
                batch.fail(self.error)
        self.batches = []


def sent(producer: FakeProducer, plan: SendPlan) -> Sending:
    sending = Sending(producer, plan, lambda _: None, lambda *_: None)  # type: ignore[arg-type]
    sending.run()
    return sending


@pytest.mark.parametrize("is_quick", [False, True], ids=["later", "before send returns"])
def test_every_record_is_counted_once(is_quick: bool) -> None:
    producer = FakeProducer()
    producer.is_quick = is_quick
    sending = sent(producer, SendPlan("t", 10, Counted(), warmup=4))
    assert sending.steady is not None
    assert (sending.all.total.records, sending.all.total.size_bytes) == (10, 10)
    assert (sending.steady.total.records, sending.steady.total.size_bytes) == (6, 6)
    assert producer.groups == [4, 6]


def test_groups_of_large_records_are_small() -> None:
    producer = FakeProducer()
    sent(producer, SendPlan("t", 20, random_payloads(GROUP_BYTES_MAX // 2, 20)))
    assert set(producer.groups) == {2}


def test_refused_batches_are_not_counted_as_stored() -> None:
    producer = FakeProducer()
    producer.error = NetworkError("gone")
    sending = sent(producer, SendPlan("t", 7, Counted()))
    assert (sending.all.total.records, sending.failures) == (0, {"gone": 7})


def test_batch_with_one_bad_record_fails_whole_and_says_why() -> None:
    producer = FakeProducer()
    producer.error = InvalidRecordError("bad", record_errors={1: "no key"})
    sending = sent(producer, SendPlan("t", 3, Counted()))
    assert sending.all.total.records == 0
    assert sorted(sending.failures.values()) == [1, 2]


def test_interval_without_a_stored_record_prints_nothing() -> None:
    def lines_of(producer: FakeProducer) -> list[str]:
        lines: list[str] = []
        ticks = count(step=0.002)
        plan = SendPlan("t", 3 * GROUP_RECORDS_MAX, Counted(), interval_ms=1)
        Sending(producer, plan, lines.extend, lambda *_: None, lambda: next(ticks)).run()  # type: ignore[arg-type]
        return lines

    producer = FakeProducer()
    assert len(lines_of(producer)) == 1
    producer.is_quick = True
    assert len(lines_of(producer)) == 3
