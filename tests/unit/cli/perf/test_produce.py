"""`ottla perf produce` against a broker: lines, transactions, failures, Ctrl-C."""

import json
import re
from pathlib import Path

import pytest
from ottla.cli.perf.sending import Sending
from tests.unit.cli.real_broker import RunOttla

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
