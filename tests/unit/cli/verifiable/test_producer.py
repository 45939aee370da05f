"""`ottla verifiable-producer`: flags, events, signals."""

import signal

import pytest
from tests.unit.cli.real_broker import RunOttla
from tests.unit.cli.verifiable.conftest import events_of, signalled

from ottla.testing import Broker


def test_every_record_has_an_event(ottla: RunOttla, broker: Broker, topic: str) -> None:
    said = ottla("verifiable-producer", topic, "--max-messages", 3)
    assert (said.rc, said.err) == (0, "")
    names = [event["name"] for event in events_of(said.lines)]
    assert names == ["startup_complete", *["producer_send_success"] * 3, "shutdown_complete", "tool_data"]
    sent = events_of(said.lines, "producer_send_success")
    assert [(each["key"], each["value"], each["offset"]) for each in sent] == [(None, "0", 0), (None, "1", 1), (None, "2", 2)]
    data = events_of(said.lines)[-1]
    assert (data["sent"], data["acked"], data["target_throughput"]) == (3, 3, -1)
    assert [record.value for record in broker.await_records(topic, 3)] == [b"0", b"1", b"2"]


def test_prefix_keys_and_timestamps(ottla: RunOttla, broker: Broker, topic: str) -> None:
    flags = ("--value-prefix", 7, "--repeating-keys", 2, "--message-create-time", 1000, "--acks", "0", "--throughput", 1000)
    said = ottla("verifiable-producer", "--topic", topic, "--max-messages", 3, *flags)
    assert said.rc == 0, said.err
    records = broker.await_records(topic, 3)
    assert [(each.key, each.value) for each in records] == [(b"0", b"7.0"), (b"1", b"7.1"), (b"0", b"7.2")]
    assert all(1000 <= each.timestamp < 1_000_000 for each in records)
    assert {each["offset"] for each in events_of(said.lines, "producer_send_success")} == {-1}


def test_record_that_is_refused_has_an_error_event_and_ends_with_1(ottla: RunOttla, topic: str) -> None:
    said = ottla("verifiable-producer", topic, "--max-messages", 1, "--command-property", "max.request.size=70")
    assert said.rc == 1
    (error,) = events_of(said.lines, "producer_send_error")
    assert error["exception"] == "class org.apache.kafka.common.errors.RecordTooLargeException"
    assert "max.request.size" in error["message"]
    assert (events_of(said.lines)[-1]["sent"], events_of(said.lines)[-1]["acked"]) == (1, 0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signal_ends_it_with_the_closing_events(broker: Broker, topic: str, number: int, code: int) -> None:
    arguments = ("verifiable-producer", topic, "-b", broker.bootstrap_servers, "--throughput", 200)
    rc, lines = signalled(arguments, "producer_send_success", number)
    assert rc == code
    closing = [event["name"] for event in events_of(lines)[-2:]]
    assert closing == ["shutdown_complete", "tool_data"]
    data = events_of(lines)[-1]
    assert data["sent"] == data["acked"] == len(events_of(lines, "producer_send_success"))


@pytest.mark.parametrize(
    ("flags", "fault"),
    [(("x", "--throughput", 0), "--throughput 0"), ((), "name the topic"), (("x", "--repeating-keys", 0), "repeating-keys")],
)
def test_flags_that_make_no_sense_are_refused(ottla: RunOttla, flags: tuple[object, ...], fault: str) -> None:
    said = ottla("verifiable-producer", *flags)
    assert (said.rc, said.out) == (2, "")
    assert fault in said.err
