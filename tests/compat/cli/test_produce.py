"""`ottla produce` compared with kafka-console-producer: the same lines become the same records, in the same partitions."""

import json
from collections import Counter

import pytest
from tests.compat.cli.conftest import RunOttla, RunTool
from tests.support.servers.kafka_server import HANG_S

# Kafka's tool sends its last records as its process ends; with --sync it has sent them before.

EVERYTHING = tuple(
    flag for part in ("key", "headers", "partition", "value") for flag in ("--formatter-property", f"print.{part}=true")
)


def read(ottla: RunOttla, topic: str) -> list[str]:
    """Every record of a topic, with everything a producer decides; by partition, then in order."""
    said = ottla("consume", topic, "--from-beginning", "--until-end", *EVERYTHING)
    assert said.rc == 0, said.err
    return sorted(said.lines, key=lambda line: line.split("\t")[0])


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("one\ntwo\n\nlast line without an end", ()),
        ("dos\r\nline ends\r\n", ()),
        ("a\tb\nc\td\te\n", ("parse.key=true",)),
        ("a:b\n:empty key\nempty value:\n", ("parse.key=true", "key.separator=:")),
        ("a=>b=>c\n", ("parse.key=true", "key.separator==>")),
        ("h1:v1,h2:v2\tk\tv\n", ("parse.key=true", "parse.headers=true")),
        ("h1:v1\tv\n", ("parse.headers=true",)),
        ("NULL\tNULL\tNULL\nh:NULL\tk\tNULL\n", ("parse.key=true", "parse.headers=true", "null.marker=NULL")),
        ("no separator\nk\tv\n", ("parse.key=true", "ignore.error=true")),
        ("h\tk\tv\n", ("parse.key=true", "parse.headers=true", "ignore.error=true")),
        (
            "x;y|k=1;v\n",
            (
                "parse.headers=true",
                "headers.delimiter==",
                "headers.separator=;",
                "headers.key.separator=|",
                "ignore.error=true",
            ),
        ),
        ("schön → 字\n", ()),
    ],
)
def test_lines_become_the_same_records(
    ottla: RunOttla, kafka: RunTool, topic: str, text: str, properties: tuple[str, ...]
) -> None:
    flags = [flag for each in properties for flag in ("--reader-property", each)]
    for name in (f"{topic}-ours", f"{topic}-theirs"):
        assert ottla("topics", "create", name, "--partitions", 1).rc == 0
    ours = ottla("produce", f"{topic}-ours", *flags, stdin=text.encode())
    theirs = kafka("console_producer", "--sync", "--timeout", 0, "--topic", f"{topic}-theirs", *flags, stdin=text)
    assert (ours.rc, theirs.rc) == (0, 0), ours.err
    records = read(ottla, f"{topic}-ours")
    assert records == read(ottla, f"{topic}-theirs")
    assert records


def test_invalid_line_ends_both_after_the_lines_before_it(ottla: RunOttla, kafka: RunTool, topic: str) -> None:
    flags = ("--reader-property", "parse.key=true")
    for name in (f"{topic}-ours", f"{topic}-theirs"):
        ottla("topics", "create", name, "--partitions", 1)
    ours = ottla("produce", f"{topic}-ours", *flags, stdin=b"k\tv\nbad\nk\tw\n")
    theirs = kafka(
        "console_producer", "--sync", "--timeout", 0, "--topic", f"{topic}-theirs", *flags, stdin="k\tv\nbad\nk\tw\n"
    )
    assert ours.rc == theirs.rc == 1
    assert "line 2 has no key.separator" in ours.err
    assert "Stored before that: 1 record" in ours.err
    assert len(read(ottla, f"{topic}-ours")) == 1


def test_keys_go_where_javas_client_puts_them(ottla: RunOttla, kafka: RunTool, topic: str) -> None:
    lines = "".join(f"{'k' * (number % 9)}{number}:{number}\n" for number in range(200))
    for name in (f"{topic}-ours", f"{topic}-theirs"):
        ottla("topics", "create", name, "--partitions", 7)
    assert ottla("produce", f"{topic}-ours", "--key-separator", ":", stdin=lines.encode()).rc == 0
    flags = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    assert kafka("console_producer", "--sync", "--timeout", 0, "--topic", f"{topic}-theirs", *flags, stdin=lines).rc == 0
    records = read(ottla, f"{topic}-ours")
    assert records == read(ottla, f"{topic}-theirs")
    assert len({line.split("\t")[0] for line in records}) == 7


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_kafkas_consumer_reads_what_we_send(ottla: RunOttla, kafka: RunTool, topic: str, codec: str, acks: str) -> None:
    ottla("topics", "create", topic, "--partitions", 1)
    lines = [f"line {number} of {codec}" for number in range(1000)]
    sent = ottla("produce", topic, "--compression", codec, "--acks", acks, "--json", stdin="\n".join(lines).encode())
    assert sent.rc == 0, sent.err
    assert json.loads(sent.out)["records"] == 1000
    flags = ("--partition", 0, "--offset", "earliest", "--max-messages", 1000, "--timeout-ms", HANG_S * 1000)
    if codec == "none" or acks == "all":  # each start of Kafka's consumer is slow
        assert kafka("console_consumer", "--topic", topic, *flags).lines == lines
    assert ottla("consume", topic, "--from-beginning", "--until-end").lines == lines


def test_many_lines_stay_in_order_and_come_once(ottla: RunOttla, topic: str) -> None:
    ottla("topics", "create", topic, "--partitions", 3)
    lines = [str(number) for number in range(100_000)]
    sent = json.loads(ottla("produce", topic, "--batch-size", 20_000, "--json", stdin="\n".join(lines).encode()).out)
    assert sent["records"] == len(lines)
    assert len(sent["partitions"]) == 3, "records without a key are spread"
    offsets = {each["partition"]: each["lastOffset"] + 1 for each in sent["partitions"]}
    assert sum(offsets.values()) == len(lines)
    found = []
    for partition in range(3):
        numbers = [
            int(line) for line in ottla("consume", topic, "--partition", partition, "--from-beginning", "--until-end").lines
        ]
        assert numbers == sorted(numbers)
        found += numbers
    assert Counter(found) == Counter(range(100_000))


def test_batches_larger_than_the_topic_takes_are_split(ottla: RunOttla, topic: str) -> None:
    ottla("topics", "create", topic, "--partitions", 1, "--config", "max.message.bytes=2000")
    lines = [f"{number:050}" for number in range(1000)]
    sent = ottla("produce", topic, stdin="\n".join(lines).encode())
    assert sent.rc == 0, sent.err
    assert ottla("consume", topic, "--from-beginning", "--until-end").lines == lines
    refused = ottla("produce", topic, stdin=b"short\n" + b"x" * 5000)
    assert refused.rc == 1
    assert "MESSAGE_TOO_LARGE" in refused.err
    assert "Stored before that: 1 record" in refused.err


def test_missing_topic_is_created(ottla: RunOttla, topic: str) -> None:
    sent = ottla("produce", topic, "--sync", stdin=b"a\nb\n")
    assert sent.rc == 0, sent.err
    assert len(ottla("topics", "describe", topic).lines) == 3, "num.partitions of the server is 2"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a/b",), "INVALID_TOPIC_EXCEPTION"),
        (("TOPIC", "--partition", 9), "has no partition 9"),
        (("compacted",), "INVALID_RECORD"),
    ],
)
def test_refusals_are_one_sentence(ottla: RunOttla, topic: str, arguments: tuple[object, ...], said: str) -> None:
    ottla("topics", "create", topic)
    ottla("topics", "create", "compacted", "--config", "cleanup.policy=compact", "--if-not-exists")
    refused = ottla("produce", *(str(each).replace("TOPIC", topic) for each in arguments), stdin=b"x\n")
    assert refused.rc == 1
    assert said in refused.err
    assert refused.err.count("\n") == 1
