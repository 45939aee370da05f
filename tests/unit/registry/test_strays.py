"""Stray records: written by a registry that was paused until the broker had forgotten the fence. Nobody counts them."""

import json

import pytest

from ottla.registry import decisions, records
from ottla.registry.decisions import Record
from ottla.registry.records import Content, Stored
from ottla.registry.state import GLOBAL, RegistryState

FIRST, OTHER = Content("AVRO", '"string"'), Content("AVRO", '"long"')
KEY = records.schema_key("s", 1)
PLACE = ("SCHEMA", "s", 1)


def value(content: Content, schema_id: int = 1, *, deleted: bool = False) -> bytes:
    return records.schema_value(Stored("s", 1, schema_id, content, deleted))


def state_of(*written: tuple[bytes, bytes | None, bool | None]) -> RegistryState:
    state = RegistryState()
    for each in written:
        state.replay(*each)
    return state


def repaired(state: RegistryState) -> list[Record]:
    """What the state writes until nothing is covered, replayed."""
    written = []
    while state.covered:
        batch = decisions.repair(state, *min(state.covered))
        for key, body in batch:
            state.replay(key, body, True)
        written += batch
    return written


@pytest.mark.parametrize(
    "stray",
    [value(OTHER), value(FIRST), value(OTHER, 7), value(FIRST, deleted=True), None],
    ids=["id taken", "the same again", "another id", "deleted", "tombstone"],
)
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_schema_that_a_stray_covers_is_written_again(stray: bytes | None, is_deleted: bool) -> None:
    counted = value(FIRST, deleted=is_deleted)
    state = state_of((KEY, counted, True), (KEY, stray, False))
    assert state.version("s", 1) == Stored("s", 1, 1, FIRST, is_deleted)
    assert state.covered == {PLACE}
    assert repaired(state) == [(KEY, None), (KEY, counted)]
    assert state.version("s", 1) == Stored("s", 1, 1, FIRST, is_deleted)
    for later in (  # what compaction may leave of it, and a reader that cannot tell strays, as Confluent's
        state_of((KEY, stray, False), (KEY, None, True), (KEY, counted, True)),
        state_of((KEY, stray, False), (KEY, counted, True)),
        state_of((KEY, counted, True)),
        state_of((KEY, stray, None), (KEY, None, None), (KEY, counted, None)),
    ):
        assert later.version("s", 1) == Stored("s", 1, 1, FIRST, is_deleted)
        assert not later.covered


def test_a_stray_that_alone_is_left_is_not_served_and_its_id_stays_taken(caplog: pytest.LogCaptureFixture) -> None:
    state = state_of((KEY, value(OTHER, 4), False))
    assert (state.content(".", 4), list(state.subjects()), state.covered) == (None, [], set())
    wanted = decisions.Registration('"int"', "AVRO")
    answer = decisions.register(state, "t", wanted, decisions.Checked(Content("AVRO", '"int"'))).answer
    assert answer["id"] == 5
    assert "id 4 of context . is given to nobody" in caplog.text
    imported = decisions.set_mode(state, "s", {"mode": "IMPORT"}, is_forced=False).records
    for key, body in imported:
        state.replay(key, body, True)
    again = decisions.Registration(FIRST.text, "AVRO", id=4, version=1)
    for key, body in decisions.register(state, "s", again, decisions.Checked(FIRST)).records:
        state.replay(key, body, True)
    assert state.version("s", 1) == Stored("s", 1, 4, FIRST)


def test_a_record_of_no_fence_that_takes_an_id_is_repaired_too() -> None:
    state = state_of((KEY, value(FIRST), None), (KEY, value(OTHER), None))
    assert repaired(state) == [(KEY, None), (KEY, value(FIRST))]


def test_a_reader_that_believed_a_foreign_record_believes_the_fence_more() -> None:
    state = state_of((KEY, value(OTHER), None), (KEY, value(FIRST), True))
    assert state.version("s", 1) == Stored("s", 1, 1, FIRST)
    assert not state.covered


def test_a_counted_record_of_the_key_ends_the_need_of_a_repair() -> None:
    deleted = value(FIRST, deleted=True)
    assert not state_of((KEY, value(FIRST), True), (KEY, value(OTHER), False), (KEY, deleted, True)).covered
    assert not state_of((KEY, value(FIRST), True), (KEY, value(OTHER), False), (KEY, None, True)).covered


@pytest.mark.parametrize("key", [records.delete_subject_key("s"), records.clear_subject_key("s")])
def test_a_stray_deletion_changes_nothing_for_later_readers_either(key: bytes) -> None:
    counted = [
        (records.schema_key("s", each), records.schema_value(Stored("s", each, each, Content("AVRO", f'"{each}"'))))
        for each in (1, 2)
    ]
    stray = (key, json.dumps({"subject": "s", "version": 2}).encode())
    state = state_of(*((*each, True) for each in counted), (*stray, False))
    assert len(state.versions("s")) == 2
    written = repaired(state)
    assert [body for _, body in written if body] == [body for _, body in counted]
    assert len(state_of((*stray, None), *((*each, None) for each in written)).versions("s")) == 2


@pytest.mark.parametrize("subject", [GLOBAL, "s"])
def test_settings_and_modes_are_written_again(subject: str) -> None:
    state = RegistryState()
    made = [
        *decisions.set_config(state, subject, {"compatibility": "FULL", "alias": "a"}).records,
        *decisions.set_mode(state, subject, {"mode": "IMPORT"}, is_forced=True).records,
    ]
    strays = [
        *decisions.set_config(state, subject, {"compatibility": "NONE"}).records,
        *decisions.delete_mode(state_of(*((*each, True) for each in made)), subject, is_recursive=False).records,
    ]
    state = state_of(*((*each, True) for each in made), *((*each, False) for each in strays))
    assert (state.config(subject), state.mode(subject)) == ({"compatibilityLevel": "FULL", "alias": "a"}, "IMPORT")
    assert sorted(repaired(state)) == sorted(made)
    assert not state_of(*((*each, False) for each in strays)).covered
