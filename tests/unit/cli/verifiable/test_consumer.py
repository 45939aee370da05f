"""`ottla verifiable-consumer`: flags, events, signals."""

import json
import signal

import pytest
from tests.unit.cli.real_broker import RunOttla
from tests.unit.cli.verifiable.conftest import events_of, signalled

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
    assert names[-3:] == ["partitions_revoked", "shutdown_complete", "shutdown_requested"]
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
