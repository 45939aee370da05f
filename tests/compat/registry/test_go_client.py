"""The registry, as franz-go's client for registries sees it."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.conftest import Unavailable
from tests.support.servers.go_programs import GoUnavailable, build_go_program
from tests.support.servers.kafka_server import HANG_S

from ottla.schemas import AvroDeserializer
from ottla.testing import Broker

pytestmark = pytest.mark.slow


def test_what_it_calls_is_answered(tmp_path: Path) -> None:
    try:
        program = build_go_program("registry", tmp_path)
    except GoUnavailable as reason:
        raise Unavailable(str(reason)) from None
    with Broker() as broker:
        url = broker.schema_registry_url
        done = subprocess.run([program, url], capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        framed, schema_id = bytes.fromhex(found.pop("framed")), found.pop("id")
        assert framed[:5] == b"\0" + schema_id.to_bytes(4, "big")
        assert AvroDeserializer(url).deserialize("go", [], framed) == {"a": 1, "b": 2}
    assert found == {
        "versions": [1, 2],
        "same id": True,
        "refused": 409,
        "missing": 40401,
        "compatible": False,
        "reasons": True,
        "latest": True,
        "by id": True,
        "subjects of id": ["go-value"],
        "referenced by": True,
        "still referenced": 42206,
        "level": "FULL",
        "read only": 42205,
        "imported": [9000, 7],
        "after deletion": [2],
        "with deleted": [1, 2],
        "types": 3,
        "contexts": ["."],
    }
