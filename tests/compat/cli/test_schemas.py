"""`ottla schemas` against a registry: what it prints for people and programs, its exit codes, and copies that keep ids."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cases.registry_requests import AB, ABD, A
from tests.support.servers.ottla_cli import Said, run_cli

from ottla.schemas import Schema, SchemaRegistry
from ottla.testing import Broker


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SchemaRegistry]:
    with Broker() as broker:
        monkeypatch.setenv("OTTLA_SCHEMA_REGISTRY", broker.schema_registry_url)
        yield SchemaRegistry(broker.schema_registry_url)


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    path = tmp_path / "order.avsc"
    path.write_text(A)
    return path


def schemas(*arguments: object, stdin: bytes = b"") -> Said:
    return run_cli("schemas", *arguments, stdin=stdin)


def test_register_list_and_show(registry: SchemaRegistry, schema_file: Path) -> None:
    assert "no schemas yet" in run_cli("schemas", "list", columns=100).out
    assert schemas("register", "s", schema_file).out == "s: version 1, id 1\n"
    assert json.loads(schemas("register", "s", schema_file, "--json").out) == {"subject": "s", "version": 1, "id": 1}
    schema_file.write_text(ABD)
    assert schemas("register", "s", schema_file).rc == 0
    assert schemas("list").lines == ["s"]
    assert json.loads(schemas("list", "--json").out) == [{"subject": "s", "versions": [1, 2]}]
    assert json.loads(schemas("show", "s").out) == json.loads(ABD)
    shown = json.loads(schemas("show", "s", "1", "--json").out)
    assert (shown["version"], shown["id"], shown["schema"]) == (1, 1, A)
    assert json.loads(schemas("show", "id", "2").out) == json.loads(ABD)
    assert '+      "name": "b",' in schemas("diff", "s", "1").lines


def test_check_tells_ci_what_is_wrong(registry: SchemaRegistry, schema_file: Path) -> None:
    registry.register("s", Schema(A))
    assert schemas("check", "s", schema_file).rc == 0
    schema_file.write_text(AB)
    said = schemas("check", "s", schema_file)
    assert said.rc == 1
    assert "field 'b' of record R has no default" in said.out
    told = json.loads(schemas("check", "s", schema_file, "--json").out)
    assert (told["compatible"], len(told["messages"]) > 0) == (False, True)
    assert registry.versions("s") == [1]


def test_level_and_mode(registry: SchemaRegistry) -> None:
    registry.register("s", Schema(A))
    assert schemas("level").out == "the registry: BACKWARD\n"
    assert schemas("level", "s", "--set", "full").out == "s: FULL\n"
    assert json.loads(schemas("level", "s", "--json").out) == {"subject": "s", "level": "FULL"}
    assert schemas("level", "s", "--reset").out == schemas("level", "s", "--reset").out == "s: BACKWARD\n"
    assert schemas("level", "--set", "NONE").out == "the registry: NONE\n"
    assert schemas("mode", "s", "--set", "READONLY").out == "s: READONLY\n"
    refused = schemas("delete", "s", "--yes")
    assert (refused.rc, "read-only" in refused.err) == (1, True)
    assert schemas("mode", "s", "--reset").out == "s: READWRITE\n"
    refused = schemas("mode", "s", "--set", "IMPORT")
    assert (refused.rc, "force" in refused.err) == (1, True)


def test_delete(registry: SchemaRegistry) -> None:
    registry.register("s", Schema(A))
    registry.register("s", Schema(ABD))
    assert schemas("delete", "s", "1", "--yes").rc == 0
    assert json.loads(schemas("delete", "s", "--permanent", "--yes", "--json").out) == {"subject": "s", "deleted": [1, 2]}
    assert registry.subjects(deleted=True) == []


def test_a_copy_keeps_ids_versions_references_contexts_and_what_is_deleted(registry: SchemaRegistry, tmp_path: Path) -> None:
    registry.register("part", Schema('{"type":"record","name":"Part","fields":[]}'))
    registry.register("gone", Schema('"int"'))
    whole = json.loads(A) | {"name": "W", "fields": [{"name": "p", "type": "Part"}]}
    reference = {"name": "Part", "subject": "part", "version": 1}
    registry.call("POST", "/subjects/whole/versions", {"schema": json.dumps(whole), "references": [reference]})
    registry.register("s", Schema(A, metadata={"properties": {"owner": "ada"}}))
    registry.register("s", Schema(ABD))
    registry.register(":.other:s", Schema('"string"'))
    registry.register("p", Schema('syntax = "proto3";\nmessage M {\n  int32 a = 1;\n}\n', "PROTOBUF"))
    registry.call("DELETE", "/subjects/s/versions/1")
    registry.call("DELETE", "/subjects/gone")
    file = tmp_path / "schemas.jsonl"
    assert schemas("export", file).rc == 0
    with Broker() as broker:
        url = broker.schema_registry_url
        said = schemas("import", file, "--yes", "-r", url)
        assert (said.rc, said.err) == (0, "")
        other = SchemaRegistry(url)
        for subject in registry.subjects(deleted=True):
            assert other.versions(subject, deleted=True) == registry.versions(subject, deleted=True)
            for version in registry.versions(subject, deleted=True):
                assert other.version(subject, version) == registry.version(subject, version)
        assert other.subjects() == registry.subjects()
        assert other.versions("s") == [2]
        assert other.call("GET", "/mode") == {"mode": "READWRITE"}
        assert schemas("import", file, "--yes", "-r", url).rc == 0  # the same again changes nothing
        assert other.versions("s") == [2]
        highest = max(json.loads(each)["id"] for each in file.read_text().splitlines())
        assert other.register("s", Schema(ABD.replace('"b"', '"c"'))).id == highest + 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("show", "nothing"), "Subject 'nothing' not found"),
        (("show", "s", "x"), "a version is a number, or latest"),
        (("register", "s", "/nowhere.avsc"), "/nowhere.avsc cannot be read"),
        (("register", "s", "-"), "add --type avro, json or protobuf"),
        (("register", "s", "-", "--type", "avro", "--reference", "x"), "write NAME=SUBJECT:VERSION"),
        (("import", "/nowhere", "--yes"), "/nowhere cannot be read"),
        (("level", "--set", "FULL", "--reset"), "exclude each other"),
        (("list", "-r", "http://127.0.0.1:1"), "does not answer"),
        (("list", "-r", "nonsense"), "no address of a schema registry"),
    ],
)
def test_mistakes_are_explained(registry: SchemaRegistry, arguments: tuple[str, ...], told: str) -> None:
    said = schemas(*arguments)
    assert said.rc != 0
    assert told in said.err
    assert "Traceback" not in said.err


def test_import_refuses_a_line_that_is_none(registry: SchemaRegistry) -> None:
    said = schemas("import", "--yes", stdin=b'{"subject":"s"}\n')
    assert (said.rc, "line 1" in said.err) == (2, True)


@pytest.mark.parametrize("verb", ["list", "show", "register", "check", "diff", "delete", "level", "mode", "export", "import"])
def test_every_help_page_has_examples(verb: str) -> None:
    assert f"ottla schemas {verb}" in schemas(verb, "--help").out.partition("Examples:")[2]
