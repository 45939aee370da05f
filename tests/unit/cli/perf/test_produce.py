"""`ottla perf produce` against a broker: lines, transactions, failures, Ctrl-C."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import click
import pytest
from tests.unit.cli.real_broker import RunOttla

from ottla.cli.perf.produce import (
    GROUP_BYTES_MAX,
    HEADINGS,
    POOL_VALUES_MAX,
    Counted,
    Pool,
    Sending,
    SendPlan,
    SendStatistics,
    file_payloads,
    random_payloads,
)
from ottla.client_core.producer.batch import ProducerBatch
from ottla.errors import InvalidRecordError, NetworkError
from ottla.records.kernels import BufferMemory
from ottla.testing import Broker


def stored(broker: Broker, topic: str, count: int) -> list[bytes]:
    return [record.value or b"" for record in broker.await_records(topic, count)]


def test_kafkas_spelling_stores_records_and_prints_a_table_with_metrics(
    ottla: RunOttla, broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS")
    props = ("--producer-props", f"bootstrap.servers={broker.bootstrap_servers}", "acks=all", "--print-metrics")
    size = ("--num-records", 300, "--record-size", 10, "--throughput", 1000)
    said = ottla("producer-perf-test", "--topic", topic, *size, "--warmup-records", 100, "--reporting-interval", 20, *props)
    assert said.rc == 0, said.err
    assert said.lines[0] == f"Sent to {topic}"
    assert [line.split()[:3] for line in said.lines[2:4]] == [["all", "300", ANY], ["steady", "state", "200"]]
    assert " of 300  " in said.err
    assert "producer-metrics record-send-total 300.000" in said.lines
    assert {len(value) for value in stored(broker, topic, 300)} == {10}


def test_values_of_a_file_and_numbers(ottla: RunOttla, broker: Broker, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "payloads.txt"
    path.write_text("one,two,three")
    said = ottla(
        "perf", "produce", topic, "--num-records", 50, "--payload-file", path, "--payload-delimiter", ",", "--throughput", -1
    )
    assert said.rc == 0, said.err
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
    assert said.lines[2].split()[:2] == ["all", "0"]
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
    assert said.lines[2].split()[:2] == ["all", "500"]


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
    assert set(file_payloads(str(path), delimiter, 1000).take(1000)) == parts


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
    sending = Sending(producer, plan, lambda *_: None)  # type: ignore[arg-type]
    sending.run()
    return sending


@pytest.mark.parametrize("is_quick", [False, True], ids=["later", "before send returns"])
def test_every_record_is_counted_once(is_quick: bool) -> None:
    producer = FakeProducer()
    producer.is_quick = is_quick
    sending = sent(producer, SendPlan("t", 10, Counted(), warmup=4))
    assert sending.steady is not None
    assert (sending.all.records, sending.all.size_bytes) == (10, 10)
    assert (sending.steady.records, sending.steady.size_bytes) == (6, 6)
    assert producer.groups == [4, 6]


def test_groups_of_large_records_are_small() -> None:
    producer = FakeProducer()
    sent(producer, SendPlan("t", 20, random_payloads(GROUP_BYTES_MAX // 2, 20)))
    assert set(producer.groups) == {2}


def test_refused_batches_are_not_counted_as_stored() -> None:
    producer = FakeProducer()
    producer.error = NetworkError("gone")
    sending = sent(producer, SendPlan("t", 7, Counted()))
    assert (sending.all.records, sending.failures) == (0, {"gone": 7})


def test_batch_with_one_bad_record_fails_whole_and_says_why() -> None:
    producer = FakeProducer()
    producer.error = InvalidRecordError("bad", record_errors={1: "no key"})
    sending = sent(producer, SendPlan("t", 3, Counted()))
    assert sending.all.records == 0
    assert sorted(sending.failures.values()) == [1, 2]
