"""`ottla produce` compared with kafka-console-producer: the same lines become the same records, in the same partitions."""

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.compat.cli.conftest import RunOttla, RunTool
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_cli import Said

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
    assert "standard input, line 2 has no key.separator" in ours.err
    assert f". 1 record stored in {topic}-ours" in ours.err
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
    sent = ottla("produce", topic, "--compression", codec, "--acks", acks, "--summary", stdin="\n".join(lines).encode())
    assert sent.rc == 0, sent.err
    assert json.loads(sent.out)["records"] == 1000
    flags = ("--partition", 0, "--offset", "earliest", "--max-messages", 1000, "--timeout-ms", HANG_S * 1000)
    if codec == "none" or acks == "all":  # each start of Kafka's consumer is slow
        assert kafka("console_consumer", "--topic", topic, *flags).lines == lines
    # With acks=0 the command ends before the broker has stored anything.
    await_true(lambda: ottla("get-offsets", topic).lines == [f"{topic}:0:1000"], "all records are stored")
    assert ottla("consume", topic, "--from-beginning", "--until-end").lines == lines


def test_many_lines_stay_in_order_and_come_once(ottla: RunOttla, topic: str) -> None:
    ottla("topics", "create", topic, "--partitions", 3)
    lines = [str(number) for number in range(100_000)]
    sent = json.loads(ottla("produce", topic, "--batch-size", 20_000, "--summary", stdin="\n".join(lines).encode()).out)
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
    assert f". 1 record stored in {topic}, 1 refused" in refused.err


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


def test_carriage_returns_stay_where_kafkas_tool_drops_them(ottla: RunOttla, topic: str) -> None:
    ottla("topics", "create", topic, "--partitions", 1)
    assert ottla("produce", topic, stdin=b"dos\r\nline\rends\r\n").rc == 0
    assert ottla("consume", topic, "--from-beginning", "--until-end").raw == b"dos\r\nline\rends\r\n"


def test_consume_json_pipes_into_produce_json(ottla: RunOttla, topic: str, tmp_path: Path) -> None:
    """Keys, nulls, headers, bytes that are not UTF-8, timestamps and partitions arrive as they were."""
    source, copy = f"{topic}-source", f"{topic}-copy"
    for name in (source, copy):
        ottla("topics", "create", name, "--partitions", 3)
    made: list[dict[str, object]] = [
        {"partition": 2, "timestamp": 1_700_000_000_123, "key": "k", "value": "schön\u0000\u009b\n"},
        {"partition": 2, "timestamp": 5, "key": None, "value": None},
        {"partition": 0, "timestamp": 7, "key_base64": "/wA=", "value_base64": "gIE="},
        {"partition": 1, "timestamp": 9, "key": "", "value": ""},
        {
            "partition": 1,
            "timestamp": 8,
            "key": "h",
            "value": '{"a": 1}',
            "headers": [
                {"name": "a", "value": "1"},
                {"name": "a", "value_base64": "/w=="},
                {"name": "", "value": None},
                {"name": "\udcff", "value": ""},
            ],
        },
    ]
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in made)
    assert ottla("produce", source, "--json", stdin=lines).rc == 0
    read = ("--from-beginning", "--until-end", "--json")
    first = ottla("consume", source, *read)
    assert ottla("produce", copy, "--json", stdin=first.raw).rc == 0
    second = ottla("consume", copy, *read)

    def content(said: Said) -> list[dict[str, object]]:
        found = [json.loads(line) for line in said.lines]
        for each in found:
            del each["topic"], each["leaderEpoch"]
        return sorted(found, key=lambda each: (each["partition"], each["offset"]))

    assert content(second) == content(first)
    kept = {(each["partition"], each["timestamp"]): each for each in content(second)}
    for each in made:
        found = kept[each["partition"], each["timestamp"]]
        assert {name: found[name] for name in each} == each

    dump = tmp_path / "dump.jsonl"
    dump.write_bytes(second.raw)
    again = ottla("produce", "--json", "--repartition", "--summary", stdin=second.raw)
    assert again.rc == 0, again.err
    assert {each["topic"] for each in json.loads(again.out)["partitions"]} == {copy}
    assert ottla("produce", source, dump, "--json").rc == 0
    assert len(ottla("consume", copy, *read).lines) == 2 * len(made)
