"""The records of `_schemas`, in Confluent's bytes, and the state that they add up to."""

import json
import uuid
from hashlib import md5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples

from ottla.registry import records
from ottla.registry.records import Content, Reference, Stored
from ottla.registry.state import RegistryState

WRITTEN_BY_CONFLUENT = [
    (b'{"keytype":"NOOP","magic":0}', None),
    (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
    (
        b'{"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}',
        b'{"subject":"orders-value","version":1,"id":1,"md5":"CV1xzxJVa51eMwrVdbPfXQ==","schema":"\\"string\\"","deleted":false}',
    ),
    (
        b'{"keytype":"SCHEMA","subject":"orders-value","version":2,"magic":1}',
        (
            b'{"subject":"orders-value","version":2,"id":2,"schemaType":"JSON","references":[],"metadata":null,"ruleSet":null,'
            b'"schema":"{}","deleted":false,"offset":4,"ts":1700000000000}'
        ),
    ),
    (
        b'{"keytype":"SCHEMA","subject":"gone","version":1,"magic":0}',
        b'{"subject":"gone","version":1,"id":3,"schema":"\\"int\\""}',
    ),
    (b'{"keytype":"DELETE_SUBJECT","subject":"gone","magic":0}', b'{"subject":"gone","version":1}'),
    (b'{"keytype":"MODE","subject":"orders-value","magic":0}', b'{"subject":"orders-value","mode":"READONLY"}'),
    (b'{"keytype":"CONTEXT","tenant":"default","context":"."}', b'{"tenant":"default","context":"."}'),
    (b'{"keytype":"ASSOC","tenant":"default","resourceName":"t","magic":0}', b"{}"),
]


def replayed(written: list[tuple[bytes, bytes | None]]) -> RegistryState:
    state = RegistryState()
    for key, value in written:
        state.replay(key, value)
    return state


def test_what_confluent_wrote_is_read() -> None:
    state = replayed(WRITTEN_BY_CONFLUENT)
    assert state.skipped == 0
    assert [each.id for each in state.versions("orders-value")] == [1, 2]
    assert (state.versions("gone"), len(state.versions("gone", deleted=True))) == ([], 1)
    assert state.effective_config("orders-value") == {"compatibilityLevel": "FULL"}
    assert (state.effective_mode("orders-value"), state.effective_mode("gone")) == ("READONLY", "READWRITE")
    assert state.max_ids == {".": 3}


def test_keys_and_values_have_confluents_bytes() -> None:
    stored = Stored("orders-value", 1, 1, Content("AVRO", '"string"'))
    assert records.schema_key("orders-value", 1) == WRITTEN_BY_CONFLUENT[2][0]
    assert records.schema_value(stored) == WRITTEN_BY_CONFLUENT[2][1]
    assert records.config_key(None) == WRITTEN_BY_CONFLUENT[1][0]
    assert records.mode_key("orders-value") == WRITTEN_BY_CONFLUENT[6][0]
    assert records.delete_subject_key("gone") == WRITTEN_BY_CONFLUENT[5][0]


def test_a_guid_is_the_hash_of_text_and_references() -> None:
    content = Content("AVRO", '"string"', (Reference("n", "s", 3),))
    digest = md5(b'"string"' + b"n" + b"s" + b"\x00\x00\x00\x03", usedforsecurity=False).digest()
    assert content.guid == str(uuid.UUID(bytes=digest))
    assert Content("AVRO", '"string"', metadata='{"properties":{"a":"b"}}').guid != Content("AVRO", '"string"').guid


def test_tombstones_of_a_compacted_log_are_read_without_what_they_removed() -> None:
    state = replayed(
        [
            (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', None),
            (b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b'{"subject":"s","version":7}'),
            (b'{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}', b'{"subject":"s"}'),
            (b'{"keytype":"CONFIG","subject":"s","magic":0}', None),
            (b'{"keytype":"MODE","subject":"s","magic":0}', None),
        ]
    )
    assert (state.skipped, list(state.subjects())) == (0, [])


def test_redpandas_keys_are_read() -> None:
    key = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1,"seq":3,"node":1}'
    state = replayed([(key, b'{"subject":"s","version":1,"id":1,"schema":"\\"int\\"","deleted":false}')])
    assert [each.id for each in state.versions("s")] == [1]


def test_an_id_that_is_taken_is_ignored_and_stays_with_its_schema() -> None:
    one, two = (Stored(name, 1, 1, Content("AVRO", text)) for name, text in (("a", '"int"'), ("b", '"long"')))
    state = replayed([(records.schema_key(each.subject, 1), records.schema_value(each)) for each in (one, two)])
    assert [each.subject for each in state.uses(".", 1)] == ["a"]
    assert state.versions("b") == []


@pytest.mark.parametrize("key", [b"", None, b"x", b"[]", b"{}", b'"SCHEMA"', b'{"keytype":"SCHEMA"}', b"\xff"])
@pytest.mark.parametrize("value", [b"{}", b"[]", b"x", None, b"\xff"])
def test_no_bytes_stop_the_reader(key: bytes | None, value: bytes | None) -> None:
    state = RegistryState()
    state.replay(key, value)
    assert list(state.subjects()) == []


names = st.sampled_from(["a", "b", ":.c:a"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), names, st.integers(1, 4), st.integers(1, 5), st.booleans()),
        st.tuples(st.just("remove"), names, st.integers(1, 4)),
        st.tuples(st.just("delete"), names, st.integers(1, 4)),
        st.tuples(st.just("clear"), names),
    ),
    max_size=40,
)


def record_of(step: tuple[object, ...]) -> tuple[bytes, bytes | None]:
    match step:
        case ("keep", str(subject), int(version), int(schema_id), bool(is_deleted)):
            references = (Reference("r", "a", 1),) if schema_id == 5 else ()
            stored = Stored(subject, version, schema_id, Content("AVRO", f'"text {schema_id}"', references), is_deleted)
            return records.schema_key(subject, version), records.schema_value(stored)
        case ("remove", str(subject), int(version)):
            return records.schema_key(subject, version), None
        case ("delete", str(subject), int(version)):
            return records.delete_subject_key(subject), json.dumps({"subject": subject, "version": version}).encode()
    return records.clear_subject_key(str(step[1])), json.dumps({"subject": step[1]}).encode()


@given(steps)
@settings(max_examples=examples(200))
def test_indexes_agree_with_the_versions_after_any_records(taken: list[tuple[object, ...]]) -> None:
    state = replayed([record_of(each) for each in taken])
    every = [stored for subject in state.subjects() for stored in state.versions(subject, deleted=True)]
    assert state.skipped == 0
    for each in every:
        context = ":.c:".strip(":") if each.subject.startswith(":.c:") else "."
        assert each in state.uses(context, each.id)
        assert state.content(context, each.id) == each.content
        assert state.id_of(context, each.content) == each.id
        assert (context, each.id) in state.ids_of_guid(each.content.guid)
        for _, subject, version in each.content.references:
            place = subject if context == "." else f":{context}:{subject}"
            assert each in state.referrers(place, version, deleted=True)
        assert state.next_version(each.subject) > each.version
    for context in (".", ".c"):
        for schema_id in range(1, 6):
            assert all(each in every for each in state.uses(context, schema_id))
            assert (state.content(context, schema_id) is None) == (not state.uses(context, schema_id))


@given(steps, st.integers(0, 40))
@settings(max_examples=examples(100))
def test_a_log_without_what_was_overwritten_says_the_same(taken: list[tuple[object, ...]], kept: int) -> None:
    """Compaction keeps the newest record of each key; removals may stay or go."""
    written = [record_of(each) for each in taken if each[0] in ("keep", "remove")]
    newest = {key: index for index, (key, _) in enumerate(written)}
    compacted = [each for index, each in enumerate(written) if index >= kept or newest[each[0]] == index]
    one, other = replayed(written), replayed(compacted)
    assert set(one.subjects()) == set(other.subjects())
    for subject in one.subjects():
        assert one.versions(subject, deleted=True) == other.versions(subject, deleted=True)
