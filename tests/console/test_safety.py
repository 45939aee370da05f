"""What protects the console and those who look: headers, Host, Origin, tokens, masks, clusters that are gone."""

import time
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.support.servers.console_server import RunningConsole, running_console

from ottla import Consumer, Producer
from ottla.cli.node.companions import listen
from ottla.console.masking import Masking, Rule
from ottla.schemas import AvroSerializer, Schema, SchemaRegistry
from ottla.schemas.framing import prefix, write_indexes
from ottla.testing import Broker

PATHS = ("/", "/topics", "/topics/safe", "/topics/safe/records", "/topics/safe/send", "/topics/safe/letters", "/topics/none")
WITHIN_S = 2.5
"""Two seconds, and what a busy machine adds."""


@pytest.fixture(scope="module")
def safe(broker: Broker) -> str:
    broker.create_topic("safe")
    return "safe"


@pytest.mark.parametrize("path", PATHS)
def test_pages_allow_no_scripts_but_their_own(console: RunningConsole, safe: str, path: str) -> None:
    answer = console.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert all(each.startswith(' src="/static/') for each in answer.text.split("<script")[1:])
    assert "style=" not in answer.text
    assert " on" not in {each[:3] for each in answer.text.split("<")}


def test_other_names_of_the_host_are_refused(console: RunningConsole) -> None:
    answer = console.get("/topics", Host="rebound.example:80")
    assert answer.status == 421
    assert "--allowed-host rebound.example" in answer.text


@pytest.mark.parametrize("path", ["/topics/create", "/topics/safe/send", "/topics/safe/letters", "/topics/safe/delete"])
def test_changes_need_the_token_and_the_own_origin(console: RunningConsole, safe: str, path: str) -> None:
    stranger = console.post(path, {"name": "x"}, Origin="http://evil.example")
    assert (stranger.status, "may not change things here" in stranger.text) == (403, True)
    assert console.raw(path, b"name=x").status == 403
    assert console.raw(path, b"name=x&csrf=" + b"0" * 64).status == 403
    assert console.get(path).status in (200, 404, 405)


def test_console_without_changes_refuses_them(broker: Broker, safe: str) -> None:
    with running_console(broker.bootstrap_servers, allows_changes=False) as console:
        answer = console.post("/topics/safe/send", {"value": "x"})
        assert answer.status == 403
        assert "--allow-changes" in answer.text
        assert "disabled" in console.get("/topics/safe/send").text


def test_form_that_is_too_large_is_refused(console: RunningConsole, safe: str) -> None:
    answer = console.raw("/topics/safe/send-many", b"lines=" + b"x" * (9 * 1024 * 1024))
    assert answer.status == 413


@pytest.mark.parametrize(
    "path", ["/", "/topics", "/topics/x", "/topics/x/records", "/topics/x/records/0/0", "/topics/x/letters"]
)
def test_cluster_that_hangs_gives_a_page_that_says_so(path: str) -> None:
    with listen("127.0.0.1", 0) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with running_console(address) as console:
            began_s = time.monotonic()
            answer = console.get(path)
            took_s = time.monotonic() - began_s
        assert answer.status == 503
        assert "does not answer" in answer.text
        assert took_s < WITHIN_S


def test_cluster_that_is_gone_gives_a_page_that_says_so(tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("x")
        address = broker.bootstrap_servers
        with running_console(address) as console:
            assert console.get("/topics/x/records").status == 200
            broker.stop()
            began_s = time.monotonic()
            answer = console.get("/topics/x/records")
            assert (answer.status, "does not answer" in answer.text) == (503, True)
            assert time.monotonic() - began_s < WITHIN_S


def test_masked_fields_are_seen_by_nobody(broker: Broker) -> None:
    broker.create_topic("cards")
    with Producer(broker.bootstrap_servers) as producer:
        producer.send("cards", b'{"card": "4111-2222", "n": 1}', b"k", headers=[("authorization", b"secret"), ("h", b"1")])
    rules = [Rule("cards", "value", "$.card"), Rule("cards", "headers", "$.authorization")]
    with running_console(broker.bootstrap_servers, masking=Masking(rules)) as console:
        for path in (
            "/topics/cards/records",
            "/topics/cards/records/0/0",
            "/topics/cards/records/download?format=jsonl",
            "/topics/cards/records/download?format=csv",
            "/topics/cards/records/download?format=parquet",
            "/api/topics/cards/records?value=hex",
        ):
            answer = console.get(path)
            assert answer.status == 200
            for hidden in (b"4111", b"secret", b"34 31 31 31"):
                assert hidden not in answer.data, path
        for expression in (
            'value.card contains "4111"',
            '"4111"',
            'value contains "4111"',
            'headers.authorization == "secret"',
        ):
            assert console.api(f"/topics/cards/records?{_query(expression)}")["rows"] == []
        assert len(console.api(f"/topics/cards/records?{_query('value.n == 1')}")["rows"]) == 1
        assert console.get("/topics/cards/send?copy=0:0").status == 403
        broker.create_topic("open")
        assert console.post("/topics/cards/records/0/0/resend", {"target": "open"}).status == 403


def _query(expression: str) -> str:
    return urlencode({"q": expression})


def test_values_are_read_by_the_registry_and_its_absence_is_no_failure() -> None:
    with Broker() as broker:
        broker.create_topic("avro")
        fields = [{"name": "id", "type": "int"}, {"name": "who", "type": "string"}]
        serializer = AvroSerializer(broker.schema_registry_url, {"type": "record", "name": "Order", "fields": fields})
        with Producer(broker.bootstrap_servers, value_serializer=serializer) as producer:
            for number in range(5):
                producer.send("avro", {"id": number, "who": f"w{number}"}, partition=0)
        with running_console(broker.bootstrap_servers, registry_url=broker.schema_registry_url) as console:
            shown = console.api("/topics/avro/records/0/3")["record"]["value"]
            assert (shown["form"], shown["note"]) == ("avro", "schema 1")
            assert '"who": "w3"' in shown["text"]
            found = console.api(f"/topics/avro/records?{_query('value.id > 3')}")["rows"]
            assert [each["offset"] for each in found] == [4]
        with listen("127.0.0.1", 0) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            with running_console(broker.bootstrap_servers, registry_url=url) as console:
                began_s = time.monotonic()
                shown = console.api("/topics/avro/records/0/3")["record"]["value"]
                assert (shown["form"], "does not answer" in shown["note"]) == ("hex", True)
                assert time.monotonic() - began_s < 2 * WITHIN_S


def test_protobuf_and_json_schema_are_read_by_the_registry(broker: Broker) -> None:
    registry = SchemaRegistry(broker.schema_registry_url)
    message = 'syntax = "proto3"; message Order { int32 id = 1; string who = 2; }'
    shape = '{"type": "object", "properties": {"id": {"type": "integer"}}}'
    proto = registry.register("formats-value", Schema(message, "PROTOBUF")).id
    plain = registry.register("formats-json", Schema(shape, "JSON")).id
    broker.create_topic("formats")
    with Producer(broker.bootstrap_servers) as producer:
        producer.send("formats", prefix(proto) + write_indexes([0]) + b"\x08\x07\x12\x01x", partition=0)
        producer.send("formats", prefix(plain) + b'{"id": 8}', partition=0)
        producer.send("formats", prefix(999_999) + b"?", partition=0)
    with running_console(broker.bootstrap_servers, registry_url=broker.schema_registry_url) as console:
        rows = console.api("/topics/formats/records?from=oldest")["rows"]
        assert [each["value"]["form"] for each in rows] == ["protobuf", "json schema", "hex"]
        assert rows[0]["value"]["preview"] == '{"id": 7, "who": "x"}'
        assert "999999" in rows[2]["value"]["note"]
        found = console.api(f"/topics/formats/records?{_query('value.id >= 7')}&from=oldest")["rows"]
        assert [each["offset"] for each in found] == [0, 1]


def test_records_of_kafkas_own_topics_are_decoded(broker: Broker, console: RunningConsole, safe: str) -> None:
    with Consumer(broker.bootstrap_servers, group_id="safe-group", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([safe])
        with Producer(broker.bootstrap_servers) as producer:
            producer.send(safe, b"x").result(timeout=30)
        assert consumer.poll(timeout=30)
        consumer.commit()
    expression = 'key.type == "OffsetCommit" and key.group == "safe-group" and value.offset == 1'
    (row,) = console.api(f"/topics/__consumer_offsets/records?{_query(expression)}")["rows"]
    assert row["value"]["form"] == "kafka"
    with Producer(broker.bootstrap_servers, transactional_id="tx") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(safe, b"in it")
    rows = console.api("/topics/safe/records")["rows"]
    assert any(each["is_control"] and each["key"]["text"] == "transaction committed" for each in rows)
    wanted = 'key.transactionalId == "tx"'
    row = console.api(f"/topics/__transaction_state/records?{_query(wanted)}")["rows"][0]
    assert row["value"]["form"] == "kafka"
