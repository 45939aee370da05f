"""`ottla verifiable-consumer`: flags, events, signals."""

import asyncio
import json
import os
import signal
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.servers.kafka_server import free_ports
from tests.support.servers.ottla_cli import run_cli
from tests.unit.cli.real_broker import RunOttla
from tests.unit.cli.verifiable.conftest import events_of, signalled

from ottla.cli import verifiable as room
from ottla.cli.common.clients import ClientConfig
from ottla.cli.verifiable import ConsumePlan, Events, VerifiableConsumer, stopping
from ottla.client.world import real_client_world
from ottla.errors import (
    FencedInstanceIdError,
    RebalanceInProgressError,
    WakeupError,
)
from ottla.ids import TopicPartition
from ottla.testing import Broker


@pytest.fixture
def filled(ottla: RunOttla, topic: str) -> str:
    assert ottla("verifiable-producer", topic, "--max-messages", 10, "--repeating-keys", 3).rc == 0
    return topic


@pytest.mark.parametrize("protocol", ["classic", "CONSUMER"])
def test_events_of_a_run_in_order(ottla: RunOttla, filled: str, protocol: str) -> None:
    group = ("--group-id", f"g-{filled}", "--group-protocol", protocol)
    said = ottla("verifiable-consumer", filled, *group, "--max-messages", 6, "--verbose")
    assert said.rc == 0, said.err
    names = [event["name"] for event in events_of(said.lines)]
    assert names[:2] == ["startup_complete", "partitions_assigned"]
    assert names[-3:] == ["offsets_committed", "partitions_revoked", "shutdown_complete"]
    shown = events_of(said.lines, "record_data")
    assert [(each["key"], each["value"], each["offset"]) for each in shown] == [(str(n % 3), str(n), n) for n in range(6)]
    consumed = events_of(said.lines, "records_consumed")
    assert sum(each["count"] for each in consumed) == 6
    assert consumed[-1]["partitions"][0]["maxOffset"] == 5
    committed = events_of(said.lines, "offsets_committed")[-1]
    assert (committed["offsets"], committed["success"]) == ([{"topic": filled, "partition": 0, "offset": 6}], True)
    assert events_of(said.lines, "partitions_revoked")[0]["partitions"] == [{"topic": filled, "partition": 0}]


def test_next_run_goes_on_where_the_group_was(ottla: RunOttla, filled: str) -> None:
    for first, count in ((0, 4), (4, 6)):
        said = ottla("verifiable-consumer", filled, "--group-id", f"g-{filled}", "--max-messages", count)
        summaries = [each["partitions"][0] for each in events_of(said.lines, "records_consumed")]
        assert (summaries[0]["minOffset"], summaries[-1]["maxOffset"]) == (first, first + count - 1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signal_ends_it_with_the_closing_events(broker: Broker, filled: str, number: int, code: int) -> None:
    group = ("--group-id", f"g-{filled}", "--enable-autocommit")
    rc, lines = signalled(("verifiable-consumer", filled, "-b", broker.bootstrap_servers, *group), "records_consumed", number)
    assert rc == code
    assert [json.loads(line)["name"] for line in lines[-3:]] == [
        "shutdown_requested",
        "partitions_revoked",
        "shutdown_complete",
    ]
    assert events_of(lines, "offsets_committed") == []


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (("x",), "--group-id"),
        (("--group-id", "g"), "name the topic"),
        (("x", "--group-id", "g", "--reset-policy", "sometimes"), "auto.offset.reset"),
        (("x", "--group-id", "g", "--assignment-strategy", "org.apache.kafka.NoSuch"), "partition.assignment.strategy"),
        (("x", "--group-id", "g", "--group-protocol", "consumer", "--session-timeout", 10000), "session.timeout.ms"),
    ],
)
def test_flags_that_make_no_sense_are_refused(ottla: RunOttla, flags: tuple[object, ...], fault: str) -> None:
    said = ottla("verifiable-consumer", *flags)
    assert (said.rc, said.out) == (2, "")
    assert fault in said.err


OFFSETS = {TopicPartition("t", 0): 5}
COMMITTED = {"offsets": [{"topic": "t", "partition": 0, "offset": 5}]}


def committed(*outcomes: Exception | None) -> list[dict[str, Any]]:
    """The events of a commit whose attempts end like this; the error that it ends with is the last of them."""

    async def run() -> list[dict[str, Any]]:
        config = ClientConfig({"bootstrap.servers": "localhost:1", "group.id": "g"}, {})
        consumer = VerifiableConsumer(ConsumePlan("t"), config, real_client_world())
        printed: list[dict[str, Any]] = []
        left = list(outcomes)

        async def commit(offsets: object) -> None:
            outcome = left.pop(0)
            if outcome is not None:
                raise outcome

        events = SimpleNamespace(print=lambda name, **fields: printed.append({"name": name, **fields}))
        consumer._consumer, consumer._events = SimpleNamespace(commit=commit), events  # type: ignore[assignment]
        try:
            await consumer._commit(OFFSETS)
        except Exception as error:
            printed.append({"raised": type(error)})
        return printed

    return asyncio.run(run())


def test_commit_has_an_event() -> None:
    assert committed(None) == [{"name": "offsets_committed", **COMMITTED, "success": True}]


def test_failed_commit_has_an_event_with_its_error() -> None:
    failed = {"name": "offsets_committed", **COMMITTED, "error": "again", "success": False}
    assert committed(RebalanceInProgressError("again")) == [failed]


def test_commit_that_a_signal_interrupts_is_made_again() -> None:
    success = {"name": "offsets_committed", **COMMITTED, "success": True}
    assert committed(WakeupError(), None) == [success, {"raised": WakeupError}]


def test_fenced_member_ends() -> None:
    assert committed(FencedInstanceIdError()) == [{"raised": FencedInstanceIdError}]


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
    flags = ("--value-prefix", 7, "--repeating-keys", 2, "--acks", "0", "--throughput", 1000)
    said = ottla("verifiable-producer", "--topic", topic, "--max-messages", 3, *flags)
    assert said.rc == 0, said.err
    records = broker.await_records(topic, 3)
    assert [(each.key, each.value) for each in records] == [(b"0", b"7.0"), (b"1", b"7.1"), (b"0", b"7.2")]
    assert {each["offset"] for each in events_of(said.lines, "producer_send_success")} == {-1}


def test_record_that_is_refused_has_an_error_event_and_ends_with_1(ottla: RunOttla, topic: str) -> None:
    said = ottla("verifiable-producer", topic, "--max-messages", 1, "--command-property", "max.request.size=70")
    assert said.rc == 1
    (error,) = events_of(said.lines, "producer_send_error")
    assert error["exception"] == "RecordTooLargeError"
    assert "max.request.size" in error["message"]
    assert (events_of(said.lines)[-1]["sent"], events_of(said.lines)[-1]["acked"]) == (1, 0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signal_ends_it_with_the_closing_events_producer(broker: Broker, topic: str, number: int, code: int) -> None:
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
def test_flags_that_make_no_sense_are_refused_producer(ottla: RunOttla, flags: tuple[object, ...], fault: str) -> None:
    said = ottla("verifiable-producer", *flags)
    assert (said.rc, said.out) == (2, "")
    assert fault in said.err


def test_signal_ends_a_producer_that_waits_for_brokers() -> None:
    (port,) = free_ports(1)
    rc, lines = signalled(("verifiable-producer", "x", "-b", f"localhost:{port}"), "startup_complete", signal.SIGTERM)
    assert rc == 0
    assert [event["name"] for event in events_of(lines)] == ["startup_complete", "shutdown_complete", "tool_data"]
    assert (events_of(lines)[-1]["sent"], events_of(lines)[-1]["avg_throughput"]) == (0, 0.0)


def test_send_that_gives_up_has_an_event_and_the_next_one_is_tried() -> None:
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        flags = ("--max-messages", 2, "--command-property", "max.block.ms=200")
        said = run_cli("verifiable-producer", "nothing", "-b", broker.bootstrap_servers, *flags)
    assert said.rc == 1
    errors = events_of(said.lines, "producer_send_error")
    assert [(each["topic"], each["value"]) for each in errors] == [("nothing", "0"), ("nothing", "1")]
    assert all(each["exception"].endswith("Error") for each in errors)


def test_more_records_than_fit_in_memory_all_have_events(ottla: RunOttla, topic: str) -> None:
    flags = ("--command-property", "buffer.memory=20000", "--command-property", "batch.size=5000")
    said = ottla("verifiable-producer", topic, "--max-messages", 5000, *flags)
    assert said.rc == 0, said.err
    values = [int(event["value"]) for event in events_of(said.lines, "producer_send_success")]
    assert values == list(range(5000))


def test_event_is_one_line_of_json_with_its_fields_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    async def run() -> None:
        events = Events(asyncio.get_running_loop(), lambda: None)
        events.print("tool_data", sent=1, note="a\n\x9bß")
        events.flush()

    asyncio.run(run())
    out = capsys.readouterr().out
    assert list(json.loads(out)) == ["timestamp", "name", "sent", "note"]
    assert json.loads(out)["note"] == "a\n\x9bß"
    assert out.endswith('"name":"tool_data","sent":1,"note":"a\\n\\u009bß"}\n')
    assert out.count("\n") == 1


def test_output_without_a_reader_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def broken(*_: object) -> None:
        raise BrokenPipeError

    async def run() -> None:
        events = Events(asyncio.get_running_loop(), lambda: calls.append(1))
        monkeypatch.setattr(sys.stdout, "write", broken)
        events.print("one")
        events.print("two")
        assert events.is_closed

    asyncio.run(run())
    assert calls == [1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, None), (signal.SIGINT, 130)])
def test_first_signal_stops_and_a_repeated_one_is_ignored(number: signal.Signals, code: int | None) -> None:
    async def run() -> list[str]:
        calls: list[str] = []
        called = asyncio.Event()

        def stop() -> None:
            calls.append("stop")
            called.set()

        with stopping(stop) as stopped:
            os.kill(os.getpid(), number)
            await called.wait()
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.05)  # long enough for the loop to see the second one, if it counts
            assert (stopped.signal, stopped.exit_code) == (number, code)
        return calls

    assert asyncio.run(run()) == ["stop"]


def test_signals_have_their_default_effect_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "REPEATED_S", 0.01)
    before = signal.getsignal(signal.SIGINT)

    async def run() -> None:
        with stopping(lambda: None):
            os.kill(os.getpid(), signal.SIGTERM)
            while signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
                await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(run(), 60))
    assert signal.getsignal(signal.SIGINT) is before
