"""The flags of `ottla produce`: what they make of records, and which are refused."""

import json
from pathlib import Path

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla
from tests.unit.cli.produce.stored_log import Log, numbered

from ottla.records.batch import BatchView
from ottla.records.kernels import Record
from ottla.records.reader import read_records


def records(log: Log) -> list[Record]:
    return [record for view in log.views for record in read_records(view)]


def test_flags_apply_to_all_records(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node)
    flags = ("--key", "k", "--header", "a=1", "--header", "a=x=y", "--timestamp", "2026-01-31T12:00", "--partition", 1)
    said = ottla("produce", "orders", *flags, stdin=b"one\ntwo\n")
    assert (said.rc, said.err) == (0, "2 records stored in orders.\n")
    headers = (("a", b"1"), ("a", b"x=y"))
    assert [(each.key, each.value, each.headers, each.timestamp) for each in records(log)] == [
        (b"k", value, headers, 1_769_860_800_000) for value in (b"one", b"two")
    ]
    assert list(log.values) == [1]


def test_files_delimiters_and_whole_files(ottla: RunOttla, node: FakeNode, tmp_path: Path) -> None:
    log = Log(node)
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"a\0b\r\n")
    second.write_bytes(b"c\0")
    assert ottla("produce", "orders", first, second, "--partition", 0, "--delimiter", r"\0").rc == 0
    assert log.values == {0: [b"a", b"b\r\n", b"c"]}
    log = Log(node)
    assert ottla("produce", first, "-", "--topic", "orders", "--partition", 0, "--whole", stdin=b"d\n").rc == 0
    assert log.values == {0: [b"a\0b\r\n", b"d\n"]}


def test_key_separator_takes_escapes(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node)
    assert ottla("produce", "orders", "--key-separator", r"\t", stdin=b"k\tv\n").rc == 0
    assert [(each.key, each.value) for each in records(log)] == [(b"k", b"v")]


def test_json_keeps_what_records_have(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node)
    line = {"partition": 1, "timestamp": 5, "headers": [{"name": "h", "value": None}], "key_base64": "/w==", "value": None}
    assert ottla("produce", "orders", "--json", stdin=json.dumps(line).encode()).rc == 0
    (record,) = records(log)
    assert (record.key, record.value, record.headers, record.timestamp) == (b"\xff", None, (("h", None),), 5)
    assert list(log.values) == [1]


def test_flags_replace_what_json_records_have(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node)
    line = b'{"topic": "x", "partition": 1, "timestamp": 5, "headers": [{"name": "h", "value": "1"}], "key": "a", "value": "v"}'
    flags = ("--key", "k", "--timestamp", 7, "--header", "i=2", "--partition", 0)
    assert ottla("produce", "orders", "--json", *flags, stdin=line).rc == 0
    (record,) = records(log)
    assert (record.key, record.headers, record.timestamp) == (b"k", (("h", b"1"), ("i", b"2")), 7)
    assert list(log.values) == [0]


def test_json_records_go_to_their_own_topics(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node)
    said = ottla("produce", "--json", "--summary", stdin=b'{"topic": "orders", "value": "v", "partition": 0}\n')
    assert said.rc == 0, said.err
    assert log.values == {0: [b"v"]}
    assert json.loads(said.out)["partitions"][0]["topic"] == "orders"
    absent = ottla("produce", "--json", stdin=b'\n{"value": "v"}\n')
    assert absent.rc == 1
    assert "standard input, line 2: the record has no topic, and the command names none" in absent.err


@pytest.mark.parametrize(
    ("flags", "lines", "said"),
    [
        (("--json",), b'{"value": "v"}\nplain\n', "standard input, line 2 is not JSON"),
        (("--json",), b'{"value": "v"}\n\n{"value": "w", "partition": 9}\n', "standard input, line 3: topic orders has no"),
        (("--key-separator", ":"), b"k:v\nplain\n", "standard input, line 2 has no key.separator"),
        (("--command-property", "max.request.size=1000"), b"a\n" + b"x" * 990, "standard input, line 2: a record for topic"),
        (("--command-property", "max.request.size=1000"), b"a\n" + b"x" * 300_000, "standard input, line 2 is larger than"),
    ],
)
def test_bad_input_is_named_with_its_place(
    ottla: RunOttla, node: FakeNode, flags: tuple[str, ...], lines: bytes, said: str
) -> None:
    log = Log(node)
    refused = ottla("produce", "orders", *flags, stdin=lines)
    assert refused.rc == 1
    assert said in refused.err
    assert refused.err.endswith(". 1 record stored in orders\n")
    assert sum(view.count for view in log.views) == 1, "what came before is stored"


def test_settings_of_kafkas_tool_reach_the_broker(ottla: RunOttla, node: FakeNode, tmp_path: Path) -> None:
    log = Log(node)
    config = tmp_path / "producer.properties"
    config.write_text("compression.type=gzip\nacks=1\n")
    flags = ("--producer.config", config, "--producer-property", "linger.ms=1", "--timeout", 0, "--batch-size", 50)
    more = ("--max-memory-bytes", 100_000, "--request-timeout-ms", 5000, "--retry-backoff-ms", 5, "--max-block-ms", 9000)
    old = (
        "--metadata-expiry-ms",
        300_000,
        "--socket-buffer-size",
        1000,
        "--line-reader",
        "org.apache.kafka.tools.LineMessageReader",
    )
    read = ("--property", "parse.key=true", "--reader-property", "key.separator=:", "--request-required-acks", "-1")
    said = ottla("console-producer", "--topic", "orders", *flags, *more, *old, *read, stdin=b"k:v\n")
    assert (said.rc, said.err) == (0, "1 record stored in orders.\n")
    (view,) = log.views
    assert (view.codec.title, view.producer_id) == ("gzip", 5), "acks=-1 of the flags allows idempotence"
    assert ottla("produce", "orders", "--compression-codec", "--sync", "--quiet", stdin=b"a\n").err == ""
    assert log.views[-1].codec.title == "gzip"


def test_sync_stores_records_one_by_one(ottla: RunOttla, node: FakeNode) -> None:
    def refuse(partition: int, view: BatchView) -> int:
        return 87 if len(log.views) == 3 else 0

    log = Log(node, refuse)
    refused = ottla("produce", "orders", "--sync", stdin=numbered(5))
    assert refused.rc == 1
    assert refused.err.endswith(". 2 records stored in orders, 1 refused\n")
    assert [view.count for view in log.views] == [1, 1, 1], "nothing is sent after a failure"


def test_acks_0_claims_nothing(ottla: RunOttla, node: FakeNode) -> None:
    Log(node)
    assert (
        ottla("produce", "orders", "--acks", 0, stdin=b"a\n").err == "1 record sent without confirmation (acks=0) to orders.\n"
    )


def test_summary_comes_after_failures_too(ottla: RunOttla, node: FakeNode) -> None:
    Log(node)
    refused = ottla("produce", "orders", "--json", "--summary", stdin=b'{"value": "v", "partition": 0}\nplain\n')
    assert refused.rc == 1
    assert (json.loads(refused.out)["records"], json.loads(refused.out)["notStored"]) == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name the topic to send to"),
        (("--topic", "a", "absent.txt"), "absent.txt cannot be read: No such file"),
        (("a", "absent.txt"), "absent.txt cannot be read: No such file"),
        (("a", "/"), "/ is a directory"),
        (("a", "--line-reader", "com.example.Reader"), "Java classes cannot run here"),
        (("a", "--command-property", "acks=2"), "acks=2: must be one of"),
        (("a", "--command-property", "compression.type=brotli"), "compression.type=brotli: must be one of"),
        (("a", "--command-property", "enable.idempotence=true", "--acks", "1"), "acks=1 contradicts enable.idempotence=true"),
        (("a", "--compression", "brotli"), "brotli"),
        (("a", "--reader-property", "parse.keys=true"), "the reader has no property parse.keys"),
        (("a", "--json", "--key-separator", ":"), "--json and parse.key both say what a line is"),
        (("a", "--key", "k", "--key-separator", ":"), "--key and parse.key both say what the keys are"),
        (("a", "--repartition"), "--repartition needs --json"),
        (("a", "--whole", "--delimiter", ","), "--whole and --delimiter"),
        (("a", "--delimiter", ""), "--delimiter must not be empty"),
        (("a", "--delimiter", "\\q"), "--delimiter has an unknown escape"),
        (("a", "--header", "h"), "--header takes NAME=VALUE"),
        (("a", "--timestamp", "soon"), "--timestamp does not understand 'soon'"),
        (("a", "--command-property", "transactional.id=t"), "this command uses no transactions"),
        (("a", "--broker-list", "b:1"), "use --bootstrap-server"),
    ],
)
def test_wrong_usage(ottla: RunOttla, arguments: tuple[str, ...], said: str) -> None:
    refused = ottla("produce", *arguments)
    assert refused.rc == 2
    assert said in " ".join(refused.err.split())
