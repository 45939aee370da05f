"""`ottla consume` compared with kafka-console-consumer: the same records are printed the same."""

import json
import os
import signal
import struct
import subprocess
import time
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer
from tests.compat.cli.conftest import RunOttla, RunTool
from tests.support.servers.kafka_server import HANG_S, KafkaServer
from tests.support.servers.ottla_server import OTTLA

LINES = b"h1:a,h2:b\tk1\tv1\nNULL\tNULL\tv2\nh:NULL\tk3\tNULL\nNULL\tk4\tschoen\nNULL\tk5\t\n"
READER = [flag for each in ("parse.key=true", "parse.headers=true", "null.marker=NULL") for flag in ("--reader-property", each)]


@pytest.fixture
def filled(ottla: RunOttla, topic: str) -> str:
    ottla("topics", "create", topic, "--partitions", 1)
    assert ottla("produce", topic, *READER, stdin=LINES).rc == 0
    return topic


@pytest.mark.parametrize(
    "properties",
    [
        (),
        ("print.key=true",),
        ("print.timestamp=true", "print.key=true", "print.offset=true", "print.partition=true", "print.headers=true"),
        ("print.key=true", "print.value=false"),
        ("print.headers=true", "headers.separator=;", "key.separator= | ", "null.literal=-"),
        ("line.separator=$", "print.offset=true"),
        ("print.key=true", "key.deserializer=org.apache.kafka.common.serialization.BytesDeserializer"),
        ("print.headers=true", "headers.deserializer=org.apache.kafka.common.serialization.StringDeserializer"),
    ],
)
def test_lines_are_the_same_as_kafkas(ottla: RunOttla, kafka: RunTool, filled: str, properties: tuple[str, ...]) -> None:
    flags = [flag for each in properties for flag in ("--formatter-property", each)]
    place = ("--topic", filled, "--partition", 0, "--offset", "earliest", "--max-messages", 5)
    ours, theirs = ottla("consume", *place, *flags), kafka("console_consumer", *place, *flags)
    assert (ours.rc, ours.out) == (theirs.rc, theirs.out)
    assert "Processed a total of 5 messages" in ours.err


def test_kafkas_formatters_are_known_by_name(ottla: RunOttla, kafka: RunTool, filled: str) -> None:
    place = ("--topic", filled, "--partition", 0, "--offset", "1", "--max-messages", 2)
    for name in ("DefaultMessageFormatter", "NoOpMessageFormatter", "LoggingMessageFormatter"):
        formatter = ("--formatter", f"org.apache.kafka.tools.consumer.{name}")
        ours, theirs = ottla("consume", *place, *formatter), kafka("console_consumer", *place, *formatter)
        assert (ours.rc, ours.out) == (theirs.rc, theirs.out), name
    assert "key:k3, value:null" in ottla("consume", *place, "--formatter", "logging").err


def test_numbers_look_as_java_prints_them(ottla: RunOttla, kafka: RunTool, topic: str) -> None:
    values: dict[str, list[bytes]] = {
        "Integer": [struct.pack(">i", number) for number in (0, -1, 2**31 - 1, 0x41424344)],
        "Long": [struct.pack(">q", number) for number in (0, -1, 2**63 - 1, 0x4142434445464748)],
        "Short": [struct.pack(">h", number) for number in (0, -1, 32767, 0x4142)],
        "Double": [struct.pack(">d", number) for number in (0.1, -1.5, 1e7, 1e-3, 9.99e-4, 123456.789, 1e300, 0.5)],
        "Bytes": [b"a\\b", b"\x00\x01\x7f~ ", "schön".encode()],
        "UUID": [b"01234567-89ab-cdef-0123-456789abcdef"],
        "Boolean": [b"\x00", b"\x01"],
        "Float": [struct.pack(">f", number) for number in (0.1, -1.5, 1e7, 1e-3, 123456.79, 1e30, 3.4e38, 0.5)],
    }
    for kind, contents in values.items():
        name = f"{topic}-{kind}"
        ottla("topics", "create", name, "--partitions", 1)
        usable = [each for each in contents if b"\n" not in each and b"\r" not in each]
        assert ottla("produce", name, stdin=b"\n".join(usable) + b"\n").rc == 0
        deserializer = ("--value-deserializer", f"org.apache.kafka.common.serialization.{kind}Deserializer")
        place = ("--topic", name, "--partition", 0, "--offset", "earliest", "--max-messages", len(usable), *deserializer)
        assert ottla("consume", *place).lines == kafka("console_consumer", *place).lines, kind


def test_start_positions(ottla: RunOttla, topic: str) -> None:
    ottla("topics", "create", topic, "--partitions", 2)
    for partition in (0, 1):
        ottla("produce", topic, "--partition", partition, stdin=f"old {partition}\n".encode())
    time.sleep(0.05)  # so that no earlier record has the same millisecond
    moment = datetime.now(UTC).isoformat()
    ottla("produce", topic, "--partition", 1, stdin=b"new 1\n")

    def lines(*flags: object) -> list[str]:
        said = ottla("consume", topic, *flags)
        assert said.rc == 0, said.err
        return sorted(said.lines)

    assert lines("--from-beginning", "--until-end") == ["new 1", "old 0", "old 1"]
    assert lines("--from-time", moment, "--until-end") == ["new 1"]
    assert lines("--from-time", "1h", "--until-end") == ["new 1", "old 0", "old 1"]
    assert lines("--partition", 1, "--offset", 1, "--until-end") == ["new 1"]
    assert lines("--partitions", "0-1", "--from-beginning", "--max-messages", 3) == ["new 1", "old 0", "old 1"]
    assert lines("--timeout-ms", 200) == []
    assert lines("--until-end") == []
    beyond = ottla("consume", topic, "--partition", 1, "--offset", 99, "--timeout-ms", 1500)
    assert (beyond.rc, beyond.out) == (0, "")
    assert "has no offset 99: going on from the end, 2" in beyond.err


def test_several_topics_and_json(ottla: RunOttla, topic: str) -> None:
    for number in (1, 2):
        ottla("topics", "create", f"{topic}-{number}", "--partitions", 1)
        ottla("produce", f"{topic}-{number}", "--key-separator", ":", stdin=b"k:v\n\xff:\xfe\n")
    said = ottla("consume", "--include", f"{topic}-.*", "--from-beginning", "--max-messages", 4, "--json")
    records = [json.loads(line) for line in said.lines]
    assert {record["topic"] for record in records} == {f"{topic}-1", f"{topic}-2"}
    first = next(record for record in records if record["topic"] == f"{topic}-1")
    assert (first["key"], first["value"], first["offset"], first["headers"]) == ("k", "v", 0, [])
    assert [record["value_base64"] for record in records if "value_base64" in record] == ["/g==", "/g=="]


def test_incremental_sessions_over_many_fetches(ottla: RunOttla, topic: str) -> None:
    """Small responses, so that the session has many epochs, over partitions with and without records."""
    ottla("topics", "create", topic, "--partitions", 4)
    lines = [f"{number:0100}" for number in range(2000)]
    for partition in (1, 3):
        ottla("produce", topic, "--partition", partition, "--batch-size", 1000, stdin="\n".join(lines).encode())
    said = ottla("consume", topic, "--from-beginning", "--until-end", "--command-property", "max.partition.fetch.bytes=5000")
    assert sorted(said.lines) == sorted(lines * 2)


def test_only_committed_records(ottla: RunOttla, server: KafkaServer, topic: str) -> None:
    ottla("topics", "create", topic, "--partitions", 1)
    producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    for number, ending in enumerate(("commit", "abort", "commit", "abort")):
        producer.begin_transaction()
        for record in range(3):
            producer.produce(topic, f"{ending} {number} {record}")
            producer.flush()
        producer.commit_transaction() if ending == "commit" else producer.abort_transaction()
    expected = [f"commit {number} {record}" for number in (0, 2) for record in range(3)]
    place = (topic, "--from-beginning", "--until-end")
    assert ottla("consume", *place, "--isolation-level", "read_committed").lines == expected
    assert len(ottla("consume", *place).lines) == 12
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush()
    assert ottla("consume", *place, "--isolation-level", "read_committed").lines == expected
    producer.abort_transaction()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("absent",), "topic absent does not exist"), (("TOPIC", "--partition", 7), "has no partition 7")],
)
def test_refusals_are_one_sentence(ottla: RunOttla, filled: str, arguments: tuple[object, ...], said: str) -> None:
    refused = ottla("consume", *(str(each).replace("TOPIC", filled) for each in arguments))
    assert (refused.rc, refused.err.count("\n")) == (1, 1)
    assert said in refused.err


def test_value_of_the_wrong_type_is_an_error_or_skipped(ottla: RunOttla, filled: str) -> None:
    refused = ottla("consume", filled, "--from-beginning", "--until-end", "--value-deserializer", "integer")
    assert refused.rc == 1
    assert "the record at offset 0" in refused.err
    assert "Processed a total of 1 messages" in refused.err
    skipped = ottla(
        "consume", filled, "--from-beginning", "--until-end", "--value-deserializer", "integer", "--skip-message-on-error"
    )
    assert (skipped.rc, skipped.lines) == (0, ["null"])


def test_partitions_that_are_added_are_read_too(ottla: RunOttla, bootstrap: str, topic: str) -> None:
    ottla("topics", "create", topic, "--partitions", 1)
    flags = ("-b", bootstrap, "--from-beginning", "--max-messages", "2", "--command-property", "metadata.max.age.ms=200")
    command = [*OTTLA, "consume", topic, *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            ottla("produce", topic, stdin=b"old\n")
            assert running.stdout.readline() == "old\n"
            assert ottla("topics", "alter", topic, "--partitions", 3).rc == 0
            assert ottla("produce", topic, "--partition", 2, stdin=b"new\n").rc == 0
            assert running.stdout.readline() == "new\n"
            assert running.wait(HANG_S) == 0
        finally:
            running.kill()


def test_group_goes_on_where_it_stopped(ottla: RunOttla, topic: str) -> None:
    ottla("topics", "create", topic, "--partitions", 1)
    ottla("produce", topic, stdin=b"1\n2\n3\n4\n5\n")
    place = (topic, "--group", f"{topic}-group", "--from-beginning")
    first = ottla("consume", *place, "--max-messages", 2)
    assert (first.rc, first.lines) == (0, ["1", "2"])
    rest = ottla("consume", *place, "--until-end")
    assert (rest.rc, rest.lines) == (0, ["3", "4", "5"])
    ottla("produce", topic, stdin=b"6\n")
    uncommitted = (*place, "--until-end", "--command-property", "enable.auto.commit=false")
    assert ottla("consume", *uncommitted).lines == ["6"]
    assert ottla("consume", *uncommitted).lines == ["6"]


def test_record_that_cannot_be_shown_is_not_committed(ottla: RunOttla, topic: str) -> None:
    ottla("topics", "create", topic, "--partitions", 1)
    ottla("produce", topic, stdin=b"four\nthree\n")
    place = (topic, "--group", f"{topic}-group", "--from-beginning", "--until-end")
    refused = ottla("consume", *place, "--value-deserializer", "integer")
    assert refused.rc == 1
    assert "the record at offset 1" in refused.err
    assert ottla("consume", *place).lines == ["four", "three"]


def test_group_reads_named_and_matching_topics(ottla: RunOttla, topic: str) -> None:
    names = [f"{topic}-{name}" for name in ("a", "b1", "b2", "c")]
    for name in names:
        ottla("topics", "create", name, "--partitions", 2)
        ottla("produce", name, stdin=name.encode() + b"\n")
    chosen = (names[0], "--include", f"{topic}-b.", "--from-beginning", "--until-end")
    assert sorted(ottla("consume", *chosen).lines) == names[:3]
    assert sorted(ottla("consume", *chosen, "--group", f"{topic}-group").lines) == names[:3]


def test_interrupted_member_commits_what_it_has_shown(ottla: RunOttla, bootstrap: str, topic: str) -> None:
    ottla("topics", "create", topic, "--partitions", 1)
    ottla("produce", topic, stdin=b"1\n2\n")
    place = (topic, "--group", f"{topic}-group", "--from-beginning")
    command = [*OTTLA, "consume", *place, "-b", bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            assert [running.stdout.readline() for _ in range(2)] == ["1\n", "2\n"]
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=HANG_S)[1]
            assert (running.returncode, said) == (130, "Processed a total of 2 messages\n")
        finally:
            running.kill()
    ottla("produce", topic, stdin=b"3\n")
    assert ottla("consume", *place, "--until-end").lines == ["3"]


def test_closed_pipe_ends_the_command(ottla: RunOttla, bootstrap: str, topic: str) -> None:
    ottla("topics", "create", topic, "--partitions", 1)
    ottla("produce", topic, stdin=b"1\n2\n")
    command = [*OTTLA, "consume", topic, "--from-beginning", "-b", bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            assert running.stdout.readline() == "1\n"
            running.stdout.close()
            running.wait(HANG_S)
        finally:
            running.kill()


def test_a_terminal_is_told_that_only_new_records_are_shown(ottla: RunOttla, bootstrap: str, topic: str) -> None:
    """Somebody who has just written records, and reads them without --from-beginning, would see nothing."""
    ottla("topics", "create", topic, "--partitions", 1)
    ottla("produce", topic, stdin=b"there already\n")
    command = [*OTTLA, "consume", topic, "-b", bootstrap, "--timeout-ms", "1"]
    master, terminal = os.openpty()
    with open(master, "rb", buffering=0) as shown, subprocess.Popen(command, stdout=terminal, stderr=terminal) as running:
        os.close(terminal)
        said = b""
        try:
            while True:
                said += shown.read(4096)
        except OSError:  # the last writer has closed the terminal
            running.wait(HANG_S)
    assert said.startswith(b"Waiting for new records; --from-beginning shows those that are there, too.")
    assert b"there already" not in said
    in_a_pipe = ottla("consume", topic, "--timeout-ms", 1)
    assert "Waiting" not in in_a_pipe.err
