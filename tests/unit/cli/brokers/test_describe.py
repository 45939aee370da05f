"""`ottla brokers describe`."""

import json

from tests.unit.cli.conftest import RunOttla


def test_log_directories_with_sizes_and_states(ottla: RunOttla) -> None:
    said = ottla("brokers", "describe", "1")
    assert said.rc == 0
    assert said.lines[0].startswith("Broker: 1\tState: active\tEndpoint: localhost:9092\tRack: here")
    assert said.lines[1:] == [
        "\tLogDir: /data\tState: online\tReplicas: 1\tBytes: 4096",
        "\tLogDir: /broken\tState: KAFKA_STORAGE_ERROR\tReplicas: 0\tBytes: 0",
    ]


def test_a_fenced_broker_is_not_asked_and_is_no_failure(ottla: RunOttla) -> None:
    said = ottla("brokers", "describe", "3")
    assert said.rc == 0
    assert said.lines[1] == "\tLogDirs: the broker is fenced: it is down or cut off"


def test_a_broker_that_does_not_answer_sets_the_exit_code(ottla: RunOttla) -> None:
    said = ottla("brokers", "describe", "1", "2", "--json")
    assert said.rc == 1
    first, second = json.loads(said.out)
    assert [each["path"] for each in first["logDirs"]] == ["/data", "/broken"]
    assert second["logDirs"] is None
    assert "broker 2" in second["error"]


def test_a_table_on_a_terminal(ottla: RunOttla) -> None:
    said = ottla("brokers", "describe", "1", columns=100)
    assert said.lines[0] == "broker 1 at localhost:9092  (active)"
    assert "leads 1 partition, holds 1 replica, 0 of them out of sync" in said.out
    assert "offline" in said.out


def test_an_unknown_broker_is_named_with_those_there_are(ottla: RunOttla) -> None:
    said = ottla("brokers", "describe", "9")
    assert (said.rc, said.err) == (1, "ottla: broker 9 is not in the cluster, which has 1, 2, 3\n")
