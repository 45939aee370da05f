"""The verifiable producer when no broker is there, and when a send blocks."""

import signal

from tests.support.servers.kafka_server import free_ports
from tests.support.servers.ottla_cli import run_cli
from tests.unit.cli.real_broker import RunOttla
from tests.unit.cli.verifiable.conftest import events_of, signalled

from ottla.testing import Broker


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
    assert all(each["exception"].startswith("class org.apache.kafka.common.errors.") for each in errors)


def test_more_records_than_fit_in_memory_all_have_events(ottla: RunOttla, topic: str) -> None:
    flags = ("--command-property", "buffer.memory=20000", "--command-property", "batch.size=5000")
    said = ottla("verifiable-producer", topic, "--max-messages", 5000, *flags)
    assert said.rc == 0, said.err
    values = [int(event["value"]) for event in events_of(said.lines, "producer_send_success")]
    assert values == list(range(5000))
