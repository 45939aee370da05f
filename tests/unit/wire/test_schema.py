"""The parser of the schema table: the grammar and its special cases."""

import pytest

from ottla.wire.schema import SchemaError, Versions, parse_message, parse_table
from ottla.wire.schema.model import NEWEST, snake_case
from ottla.wire.schema.parse import parse_versions

TRAPS = """
Trap key=7 type=request listeners=broker,controller versions=2-5 flexible=4+ latest-unstable
  Old string 0-1
  key string 3 nullable=0+ default=null key ignorable entity=topicName
  Limit int32 0+ default=0x7fffffff
  Text string 0+ default=""
  Payload bytes 0+ zerocopy flexible=none
  Leader Node 4+ tag=2@4+
    Id int32 0+ default=-1
    Gone int32 0
  Others []Node 0+ nullable=3+
  By []Named 0+
  struct Named 0+
    Ids []uuid 0+
"""


def test_traps() -> None:
    message = parse_message(TRAPS)
    assert (message.name, message.key, message.kind, message.listeners) == ("Trap", 7, "request", ("broker", "controller"))
    assert (message.versions, message.flexible, message.is_latest_unstable) == (Versions(2, 5), Versions(4, 5), True)
    fields = {field.attribute: field for field in message.root.fields}
    assert list(fields) == ["key", "limit", "text", "payload", "leader", "others", "by"]
    assert fields["key"].versions == fields["key"].nullable == Versions(3, 3)
    assert (fields["key"].is_key, fields["key"].ignorable, fields["key"].entity) == (True, True, "topicName")
    assert fields["key"].default() is None
    assert fields["limit"].default() == 0x7FFFFFFF
    assert fields["text"].default() == ""
    assert (fields["payload"].zerocopy, fields["payload"].flexible) == (True, False)
    assert (fields["leader"].tag, fields["leader"].tagged) == (2, Versions(4, 5))
    assert fields["leader"].absent_as_none
    assert fields["leader"].struct is fields["others"].struct is message.structs["Node"]
    assert [field.name for field in message.structs["Node"].fields] == ["Id"]
    assert message.structs["Named"].fields[0].is_array
    assert [field.name for field in message.root.fields_in(2)] == ["Limit", "Text", "Payload", "Others", "By"]
    assert [field.name for field in message.root.tagged_in(4)] == ["Leader"]
    assert [field.name for field in message.root.absent_in(2)] == ["key", "Leader"]


def test_versions() -> None:
    assert parse_versions("3") == Versions(3, 3)
    assert parse_versions("3-7") == Versions(3, 7)
    assert parse_versions("3+") == Versions(3, NEWEST)
    assert parse_versions("none").is_empty
    assert 3 in parse_versions("3-7")
    assert 8 not in parse_versions("3-7")


def test_names() -> None:
    assert snake_case("TransactionalId") == "transactional_id"
    assert snake_case("timeoutMs") == "timeout_ms"
    assert snake_case("KRaftVersionFeature") == "kraft_version_feature"
    assert snake_case("V3AndBelowTopics") == "v3_and_below_topics"


def test_removed_and_empty_messages() -> None:
    removed = parse_message("Gone key=4 type=request versions=none flexible=none")
    assert removed.versions.is_empty
    assert not removed.root.fields
    assert parse_message("Nothing type=data versions=0 flexible=0+").root.fields_in(0) == []


def test_table_is_split_at_blank_lines() -> None:
    text = "# about\n\nA type=data versions=0 flexible=none\n  X int8 0+\n\n# more\nB type=data versions=0 flexible=none\n"
    assert parse_table(text) == {
        "A": "A type=data versions=0 flexible=none\n  X int8 0+",
        "B": "B type=data versions=0 flexible=none",
    }


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("A type=data versions=0 flexible=none colour=red", "colour=red"),
        ("A type=data versions=0 flexible=none\n  X int8 0+ colour=red", "colour=red"),
        ("A type=data versions=0 flexible=none\n  X int8", "cannot read the line"),
        ("A type=data versions=0 flexible=none\n    X int8 0+", "cannot read the line"),
        ("A type=data versions=0 flexible=none\n  X int8 0+\n    Y int8 0+", "not a struct"),
        ("A type=data versions=0 flexible=none\n  X Nowhere 0+", "no valid version has a field of it"),
    ],
)
def test_bad_tables_are_refused(lines: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        parse_message(lines)
