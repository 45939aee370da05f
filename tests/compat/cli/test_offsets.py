"""`ottla get-offsets`, `delete-records` and `log-dirs` compared with Kafka's own tools."""

import json
from pathlib import Path

import pytest
from tests.compat.cli.conftest import RunOttla, RunTool


@pytest.fixture
def filled(ottla: RunOttla, topic: str) -> str:
    """Two partitions: five records in one, three in the other."""
    ottla("topics", "create", topic, "--partitions", 2)
    for partition, count in ((0, 5), (1, 3)):
        done = ottla("produce", topic, "--partition", partition, stdin=b"x\n" * count)
        assert done.rc == 0, done.err
    return topic


def test_offsets_are_kafkas_lines(ottla: RunOttla, kafka: RunTool, filled: str) -> None:
    assert ottla("get-offsets", filled).lines == [f"{filled}:0:5", f"{filled}:1:3"]
    for flags in (
        ("--topic", filled),
        ("--topic", filled, "--time", "earliest"),
        ("--topic", filled, "--time", "-2"),
        ("--topic", filled, "--time", "-1"),
        ("--topic", filled, "--time", "max-timestamp"),
        ("--topic", filled, "--time", "-4"),
        ("--topic", filled, "--time", "-5"),
        ("--topic", filled, "--time", "0"),
        ("--topic", filled, "--time", "99999999999999"),
        ("--topic", f"{filled[:-1]}.", "--partitions", "1"),
        ("--topic-partitions", f"{filled}:0"),
        ("--topic-partitions", f"{filled}:1-,{filled}:-1"),
        ("--exclude-internal-topics",),
    ):
        ours, theirs = ottla("get-offsets", *flags), kafka("get_offsets", *flags)
        assert (ours.rc, ours.lines) == (theirs.rc, theirs.lines), flags
    assert ottla("get-offsets", "--topic", "nothing.*").rc == kafka("get_offsets", "--topic", "nothing.*").rc == 1
    found = json.loads(ottla("get-offsets", filled, "--time", "1h", "--json").out)
    assert [(each["partition"], each["offset"]) for each in found] == [(0, 0), (1, 0)]
    assert all(each["timestamp"] > 0 for each in found)


def test_records_are_deleted_up_to_an_offset(ottla: RunOttla, kafka: RunTool, filled: str, tmp_path: Path) -> None:
    done = ottla("delete-records", f"{filled}:0:2")
    assert (done.rc, done.lines[-1]) == (0, f"partition: {filled}-0\tlow_watermark: 2")
    assert kafka("get_offsets", "--topic", filled, "--time", "-2").lines == [f"{filled}:0:2", f"{filled}:1:0"]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [{"topic": filled, "partition": 1, "offset": -1}], "version": 1}))
    ours = ottla("delete-records", "--offset-json-file", file)
    theirs = kafka("delete_records", "--offset-json-file", file)
    assert (ours.rc, ours.lines) == (theirs.rc, theirs.lines)
    assert ours.lines[-1] == f"partition: {filled}-1\tlow_watermark: 3"
    beyond = ottla("delete-records", f"{filled}:0:end", f"{filled}:1:99", "absent:0:1", "--json")
    assert beyond.rc == 1
    results = {(each["topic"], each["partition"]): each for each in json.loads(beyond.out)}
    assert results[filled, 0]["lowWatermark"] == 5
    assert "OFFSET_OUT_OF_RANGE" in results[filled, 1]["error"]
    assert "absent does not exist" in results["absent", 0]["error"]


def test_directories_hold_what_kafka_says(ottla: RunOttla, kafka: RunTool, filled: str) -> None:
    ours = ottla("log-dirs", "--describe", "--topic-list", filled)
    theirs = kafka("log_dirs", "--describe", "--topic-list", filled)
    assert ours.rc == theirs.rc == 0
    assert ours.lines[:2] == theirs.lines[:2]
    assert _sorted(json.loads(ours.lines[2])) == _sorted(json.loads(theirs.lines[2]))
    assert _sorted(json.loads(ottla("log-dirs", "--topics", filled, "--brokers", 1, "--json").out)) == _sorted(
        json.loads(ours.lines[2])
    )
    partitions = json.loads(ours.lines[2])["brokers"][0]["logDirs"][0]["partitions"]
    assert sorted(each["partition"] for each in partitions) == [f"{filled}-0", f"{filled}-1"]
    assert all(each["size"] > 0 for each in partitions)
    absent = ottla("log-dirs", "--broker-list", "7")
    assert (absent.rc, "broker 7 is not in the cluster" in absent.err) == (1, True)


def _sorted(found: dict[str, list[dict[str, list[dict[str, list[dict[str, str]]]]]]]) -> object:
    for broker in found["brokers"]:
        for directory in broker["logDirs"]:
            directory["partitions"].sort(key=lambda each: each["partition"])
    return found
