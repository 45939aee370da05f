"""`ottla client-metrics`: subscriptions as Kafka's tool shows and changes them, and what clients have pushed to a node."""

import json
import time

import pytest
from tests.support.servers.kafka_server import HANG_S, free_ports
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_cli import run_cli
from tests.support.servers.ottla_server import start_ottla

from ottla import Producer
from ottla.cli.client_metrics import read_samples
from ottla.testing import Broker

STEPS = (
    (
        "--alter",
        "--name",
        "one",
        "--metrics",
        "org.apache.kafka.producer.,x.",
        "--interval",
        "5000",
        "--match",
        "client_id=a.*",
    ),
    ("--alter", "--name", "two"),
    ("--alter", "--name", "three", "--metrics", "*"),
    ("--list",),
    ("--describe",),
    ("--describe", "--name", "one"),
    ("--describe", "--name", "absent"),
    ("--alter", "--name", "one", "--interval", "", "--match", ""),
    ("--describe", "--name", "one"),
    ("--delete", "--name", "one"),
    ("--delete", "--name", "absent"),
    ("--list",),
    ("--alter",),
    ("--alter", "--name", "x", "--interval", "5"),
)


@pytest.mark.slow
@pytest.mark.kafka
def test_lines_and_exit_codes_are_kafkas(kafka_tools: KafkaTools) -> None:
    with Broker() as mine, Broker() as theirs:
        for step in STEPS:
            said = run_cli("client-metrics", *step, "-b", mine.bootstrap_servers)
            tool = "org.apache.kafka.tools.ClientMetricsCommand"
            expected = kafka_tools.run(tool, "--bootstrap-server", theirs.bootstrap_servers, *step, check=False)
            # Kafka prints errors on standard output.
            lines = [line for line in expected.stdout.splitlines() if line and not line.startswith("Error")]
            assert (said.lines, said.rc != 0) == (lines, expected.rc != 0), (step, said.err)


def test_a_subscription_from_its_beginning_to_its_end() -> None:
    with Broker() as broker:
        where = ("-b", broker.bootstrap_servers)
        assert run_cli("client-metrics", "alter", "one", "--metrics", "a.,b.", *where).lines == [
            "Altered client metrics config for one."
        ]
        made = run_cli("client-metrics", "alter", "--generate-name", "--metrics", "*", *where).lines[0].split()[-1].rstrip(".")
        assert run_cli("client-metrics", "list", *where).lines == sorted(["one", made])
        found = json.loads(run_cli("client-metrics", "describe", "one", "--json", *where).out)
        assert found == {"one": {"interval.ms": "300000", "match": "", "metrics": "a.,b."}}
        refused = run_cli("client-metrics", "alter", "one", "--interval", "5", *where)
        assert (refused.rc, "must be from 100" in refused.err) == (1, True)
        assert run_cli("client-metrics", "delete", "one", *where).rc == 0
        assert run_cli("client-metrics", "list", *where).lines == [made]
        assert run_cli("client-metrics", "alter", "a", "--name", "b", *where).rc == 2


def test_what_a_client_has_pushed_is_shown() -> None:
    [port] = free_ports(1)
    with start_ottla({"ottla.metrics.port": port}) as server:
        altered = run_cli("client-metrics", "alter", "all", "--metrics", "*", "--interval", "100", "-b", server.bootstrap)
        assert altered.rc == 0, altered.err
        url = f"http://127.0.0.1:{port}"
        with Producer(server.bootstrap, client_id="seen") as producer:
            producer.send("t", b"x").result(HANG_S)
            deadline = time.monotonic() + HANG_S
            while not (found := json.loads(run_cli("client-metrics", "show", url, "--json").out)) or not found[0]["numbers"]:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            (client,) = found
            assert (client["client_id"], client["address"]) == ("seen", "127.0.0.1")
            numbers = json.loads(run_cli("client-metrics", "show", url, "--client", "seen", "--json").out)
            assert any(each["name"] == "kafka_client_producer_record_send_total" for each in numbers)
            assert "seen" in run_cli("client-metrics", "show", url, columns=160).out
    gone = run_cli("client-metrics", "show", url)
    assert gone.rc == 1
    assert "ottla.metrics.port" in gone.err


def test_labels_are_read_as_they_were_written() -> None:
    text = '# HELP a b\na{x="1",y="q\\"\\\\n\\n"} 2.5\nb 3\n'
    assert read_samples(text) == [
        {"name": "a", "labels": {"x": "1", "y": 'q"\\n\n'}, "value": 2.5},
        {"name": "b", "labels": {}, "value": 3.0},
    ]
