"""`ottla perf latency` against a broker: lines, Kafka's old spelling, headers, Ctrl-C."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.cli.real_broker import RunOttla

from ottla.cli.perf import latency
from ottla.cli.perf.latency import TripFailed, _check
from ottla.testing import Broker


def test_topic_is_created_and_gets_the_records(ottla: RunOttla, broker: Broker) -> None:
    said = ottla("e2e-latency", "--topic", "made-by-latency", "--num-records", 5, "--record-size", 10)
    assert said.rc == 0
    assert "there is no topic made-by-latency: it is created" in said.err
    assert said.lines[0] == "From send to arrival, made-by-latency"
    assert said.lines[2].split()[0] == "5"
    assert [len(record.value or b"") for record in broker.await_records("made-by-latency", 5)] == [10] * 5


def test_keys_and_headers_are_sent(ottla: RunOttla, broker: Broker, topic: str) -> None:
    sizes = ("--record-key-size", 3, "--num-headers", 2, "--record-header-key-size", 4, "--record-header-size", -1)
    assert ottla("perf", "latency", topic, "--num-records", 2, *sizes).rc == 0
    for record in broker.await_records(topic, 2):
        assert len(record.key or b"") == 3
        assert [(len(name), value) for name, value in record.headers] == [(4, None), (4, None)]


def test_json_and_table(ottla: RunOttla, topic: str) -> None:
    found = json.loads(ottla("perf", "latency", topic, "--num-records", 3, "--json").out)
    assert (found["topic"], found["records"]) == (topic, 3)
    assert found["latencyMs"]["min"] <= found["latencyMs"]["p50"] <= found["latencyMs"]["max"]
    table = ottla("perf", "latency", topic, "--num-records", 3, columns=100)
    assert table.lines[1].split()[:2] == ["Records", "Avg"]


def test_ctrl_c_shows_what_was_measured(ottla: RunOttla, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    note = latency._Run._note

    def interrupted(self: latency._Run, number: int, elapsed_ns: int) -> None:
        note(self, number, elapsed_ns)
        if number == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(latency._Run, "_note", interrupted)
    said = ottla("perf", "latency", topic, "--json")
    assert said.rc == 130
    assert json.loads(said.out)["records"] == 3


def test_acks_0_is_refused(ottla: RunOttla) -> None:
    assert ottla("perf", "latency", "x", "--producer-acks", "0").rc == 2


HEADERS = [("h", b"1")]


def record(**changes: Any) -> Any:
    return SimpleNamespace(
        **({"topic": "t", "partition": 0, "offset": 7, "key": b"k", "value": b"v", "headers": HEADERS} | changes)
    )


def test_record_that_was_sent_passes() -> None:
    _check([record()], b"k", b"v", HEADERS)


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        ([], "did not arrive at the consumer within 60 s"),
        ([record(), record()], "2 records arrived where one was sent"),
        ([record(value=b"w")], "another record arrived than the one that was sent .offset 7 of t-0."),
        ([record(key=None)], "another record arrived"),
        ([record(headers=[])], "another record arrived"),
    ],
)
def test_anything_else_is_an_error_that_says_what_came(found: list[Any], fault: str) -> None:
    with pytest.raises(TripFailed, match=fault):
        _check(found, b"k", b"v", HEADERS)
