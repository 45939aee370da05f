"""`ottla cluster`, `ottla quorum` and `ottla brokers` compared with kafka-cluster and kafka-metadata-quorum, on one cluster."""

import json
import re

import pytest
from tests.compat.cli.conftest import RunOttla, RunTool
from tests.support.servers.kafka_tools import KafkaTools


def pairs(lines: list[str]) -> dict[str, str]:
    return {name: value.strip() for name, value in (line.split(":", 1) for line in lines)}


def test_the_clusters_id_is_printed_alike(ottla: RunOttla, kafka_tools: KafkaTools, bootstrap: str) -> None:
    ours, theirs = ottla("cluster", "id"), kafka_tools.run("cluster", "cluster-id", "--bootstrap-server", bootstrap)
    assert ours.rc == 0
    assert ours.out == theirs.stdout


def test_the_quorums_status_is_printed_alike(ottla: RunOttla, kafka: RunTool) -> None:
    ours, theirs = ottla("quorum", "describe", "--status"), kafka("metadata_quorum", "describe", "--status")
    assert ours.rc == theirs.rc == 0
    mine, other = pairs(ours.lines), pairs(theirs.lines)
    for moving in ("HighWatermark", "MaxFollowerLag", "MaxFollowerLagTimeMs"):
        assert mine.pop(moving).isdigit()
        assert other.pop(moving).isdigit()
    assert {name: _parsed(value) for name, value in mine.items()} == {name: _parsed(value) for name, value in other.items()}
    assert [re.match(r"\S+\s+", line)[0] for line in ours.lines] == [  # type: ignore[index]  # every line has both
        re.match(r"\S+\s+", line)[0]  # type: ignore[index]
        for line in theirs.lines
    ]


def _parsed(value: str) -> object:
    return json.loads(value) if value.startswith("[") else value


def test_the_quorums_replicas_are_printed_alike(ottla: RunOttla, kafka: RunTool) -> None:
    ours, theirs = ottla("quorum", "describe", "--replication"), kafka("metadata_quorum", "describe", "--replication")
    mine, other = ([line.split() for line in each.lines] for each in (ours, theirs))
    assert mine[0] == other[0]
    assert [(row[0], row[1], row[-1]) for row in mine[1:]] == [(row[0], row[1], row[-1]) for row in other[1:]]


def test_json_and_tables(ottla: RunOttla) -> None:
    quorum = json.loads(ottla("quorum", "describe", "--json").out)
    assert [each["id"] for each in quorum["voters"]] == [1]
    assert "leader: 1" in ottla("quorum", "describe", columns=100).out


def test_a_cluster_without_problems(ottla: RunOttla, topic: str) -> None:
    assert ottla("topics", "create", topic, "--partitions", 3).rc == 0
    shown = json.loads(ottla("cluster", "describe", "--json", "--check").out)
    assert (shown["isHealthy"], shown["problems"], shown["controller"]) == (True, [], 1)
    assert shown["metadataVersion"] == "4.3-IV0"
    assert ottla("topics", "describe", topic, "--check").rc == 0
    (broker,) = json.loads(ottla("brokers", "list", "--json").out)
    assert (broker["broker"], broker["isFenced"], broker["isController"]) == (1, False, True)
    assert broker["leaders"] == broker["replicas"] >= 3


def test_log_directories_of_brokers(ottla: RunOttla) -> None:
    said = ottla("brokers", "describe", "--json")
    assert said.rc == 0, said.err
    (broker,) = json.loads(said.out)
    (directory,) = broker["logDirs"]
    assert directory["error"] is None
    assert directory["usableBytes"] > 0
    assert "Log directory" in ottla("brokers", "describe", columns=120).out


def test_refusals_are_one_sentence(ottla: RunOttla) -> None:
    for arguments in (
        ("quorum", "add", "9", "--endpoint", "127.0.0.1:1"),
        ("quorum", "remove", "9", "--yes"),
        ("cluster", "unregister", "9", "--yes"),
        ("brokers", "describe", "9"),
    ):
        said = ottla(*arguments)
        assert said.rc == 1, arguments
        assert len(said.err.splitlines()) == 1, said.err


@pytest.mark.slow
def test_features_are_described_and_changed_as_kafkas_tool_does(ottla: RunOttla, kafka: RunTool) -> None:
    shown = ottla("features", "describe")
    assert shown.rc == 0, shown.err
    assert shown.lines == kafka("features", "describe").lines
    for arguments in (
        ("upgrade", "--feature", "group.version=1", "--dry-run"),
        ("downgrade", "--feature", "group.version=0", "--dry-run"),
        ("disable", "--feature", "group.version", "--dry-run"),
    ):
        ours, theirs = ottla("features", *arguments), kafka("features", *arguments)
        assert (ours.rc, theirs.rc) == (0, 0), (ours.err, theirs.err)
        assert set(ours.lines) <= set(theirs.lines), arguments
    assert ottla("features", "upgrade", "--release-version", "4.3", "--dry-run").rc == 0
    ours, theirs = (run("features", "upgrade", "--feature", "group.version=9") for run in (ottla, kafka))
    assert (ours.rc, theirs.rc) == (1, 1)
    assert ours.err.splitlines()[-1] == "ottla: 1 out of 1 operation(s) failed."
