"""What strangers may send: each request has its bound, gets a refusal that says which, and holds up nobody else."""

import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from tests.support.cases.registry_requests import A
from tests.support.servers.kafka_server import HANG_S

from ottla.registry import work
from ottla.schemas import RegistryRefusedError, Schema, SchemaRegistry
from ottla.testing import Broker


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Broker() as broker:
        yield broker.schema_registry_url


def nested(depth: int) -> str:
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


def costly() -> str:
    """A schema whose comparison takes as many steps as a naive reader would give it."""
    return json.dumps({"type": "object", "properties": {"a": {"$ref": "#/$defs/n0"}}, "$defs": definitions(60)})


def definitions(count: int) -> dict[str, object]:
    """Each definition has the next one twice in an anyOf: comparing them naively takes 2^count steps."""
    own: dict[str, object] = {
        f"n{each}": {"anyOf": [{"properties": {name: {"$ref": f"#/$defs/n{each + 1}"}}} for name in "xy"]}
        for each in range(count)
    }
    return own | {f"n{count}": {"type": "integer"}}


DEEP_PROTO = 'syntax = "proto3";\n' + "message M {" * 200 + "}" * 200


@pytest.mark.parametrize(
    ("schema", "code", "told"),
    [
        (Schema('"' + "x" * 1_000_001 + '"'), 42209, "1,000,000 bytes"),
        (Schema(nested(150)), 42201, "more than 100 levels deep"),
        (Schema(nested(20_000)), 42201, "nested too deeply|levels deep"),
        (Schema("[" * 100_000), 42201, "nested too deeply"),
        (Schema('{"not":' * 150 + "true" + "}" * 150, "JSON"), 42201, "levels deep|nested too deeply"),
        (Schema('{"$ref":"#"}', "JSON"), 42201, "circle|nowhere"),
        (Schema(DEEP_PROTO, "PROTOBUF"), 42201, "deep"),
        (Schema('{"$ref":"http://127.0.0.1:1/secret"}', "JSON"), 42201, "nothing is fetched"),
        (Schema('{"$ref":"file:///etc/passwd"}', "JSON"), 42201, "nothing is fetched"),
        (Schema('{"$schema":"http://127.0.0.1:1/draft"}', "JSON"), 42201, "is no known draft"),
        (Schema('syntax = "proto3";\nimport "/etc/passwd";', "PROTOBUF"), 42201, "/etc/passwd"),
    ],
    ids=["size", "depth", "very-deep", "unclosed", "json-depth", "circle", "proto-depth", "url", "file", "draft", "import"],
)
def test_a_schema_beyond_a_bound_is_refused(url: str, schema: Schema, code: int, told: str) -> None:
    registry = SchemaRegistry(url, timeout_s=HANG_S)
    with pytest.raises(RegistryRefusedError, match=told) as refusal:
        registry.register("s", schema)
    assert refusal.value.registry_code == code
    assert registry.call("GET", "/") == {}


def test_too_many_references_are_refused(url: str) -> None:
    many = [{"name": f"n{each}", "subject": "s", "version": 1} for each in range(1_001)]
    with pytest.raises(RegistryRefusedError, match="at most 1000 references"):
        SchemaRegistry(url).call("POST", "/subjects/s/versions", {"schema": A, "references": many})


def test_a_body_beyond_4_mb_is_refused_before_it_is_read(url: str) -> None:
    with pytest.raises(RegistryRefusedError, match="body has more than"):
        SchemaRegistry(url).call("POST", "/subjects/s/versions", {"schema": "x" * 5_000_000})


def test_nothing_is_fetched(url: str) -> None:
    """A listener that a schema names hears nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        listener.settimeout(0.5)
        with pytest.raises(RegistryRefusedError):
            SchemaRegistry(url).register("s", Schema(json.dumps({"$ref": f"http://127.0.0.1:{port}/x.json"}), "JSON"))
        with pytest.raises(TimeoutError):
            listener.accept()


def test_schemas_that_compare_slowly_do_not_hold_others_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes have a time limit; the registry answers others all the while."""
    monkeypatch.setattr(work, "TASK_S", 3.0)
    with Broker() as broker:
        url = broker.schema_registry_url
        registry = SchemaRegistry(url, timeout_s=HANG_S)
        registry.register("slow", Schema(costly(), "JSON"))
        changed = json.loads(costly())
        changed["$defs"]["n60"] = {"type": "string"}
        results: list[object] = []

        def attack() -> None:
            try:
                results.append(SchemaRegistry(url, timeout_s=HANG_S).check("slow", Schema(json.dumps(changed), "JSON")))
            except RegistryRefusedError as refusal:
                results.append(refusal.registry_code)

        attacks = [threading.Thread(target=attack) for _ in range(4)]
        for each in attacks:
            each.start()
        while any(each.is_alive() for each in attacks):
            began = time.monotonic()
            assert registry.call("GET", "/schemas/ids/1/versions")
            assert time.monotonic() - began < HANG_S / 10
            time.sleep(0.05)
        assert len(results) == 4
        assert registry.register("fine", Schema(A)).version == 1


def test_a_worker_that_takes_too_long_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        registry = SchemaRegistry(broker.schema_registry_url, timeout_s=HANG_S)
        registry.register("s", Schema(A))
        monkeypatch.setattr(work, "TASK_S", 0.0)
        with pytest.raises(RegistryRefusedError, match="takes more than 0 s"):
            registry.register("s", Schema(A.replace("int", "long")))
        monkeypatch.undo()
        assert registry.register("s", Schema(A.replace("int", "long"))).version == 2


@pytest.mark.parametrize("raw", [b"{", b"[]", b'"x"', b"7", b"\xff\xfe", b"[" * 100_000, b'{"schema":7}', b'{"schema":null}'])
def test_bodies_that_are_none_are_refused(url: str, raw: bytes) -> None:
    registry = SchemaRegistry(url)
    with registry._lock:
        status, answer = registry._once("POST", "/subjects/s/versions", raw)
    assert status in (400, 422)
    assert json.loads(answer)["error_code"] in (400, 422, 42201)
