"""The generated message classes: fresh, typed, and with the defaults of the schema table."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cases.wire_messages import all_messages

from ottla.ids import ZERO_UUID
from ottla.wire.base import Message
from ottla.wire.binding import binding_of
from ottla.wire.messages.fetch import FetchRequest, FetchTopic, PartitionData
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.vote import VoteRequestTopicData, VoteResponseTopicData

ROOT = Path(__file__).resolve().parents[3]


def test_generated_files_are_fresh() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "tools/generate_messages.py", "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"run `make generate`: {result.stdout}{result.stderr}"


def test_every_message_of_the_table_has_a_class() -> None:
    names = {cls.__name__ for cls in all_messages()}
    assert len(names) == len(all_messages()) == 272
    assert {"ProduceRequest", "ProducerSnapshot", "QuorumStateData", "TopicRecord", "OffsetCommitKey", "VotersRecord"} <= names


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_defaults_are_those_of_the_schema(cls: type[Message]) -> None:
    binding = binding_of(cls)
    for schema in (binding.schema.root, *binding.schema.structs.values()):
        value = binding.classes[schema.name]()
        assert value.__slots__ == tuple(field.attribute for field in schema.fields)
        for field in schema.fields:
            assert getattr(value, field.attribute) == binding.new_default(field)
        assert value.unknown_tags is None


def test_lists_and_structs_are_not_shared_between_messages() -> None:
    FetchRequest().topics.append(FetchTopic())
    assert FetchRequest().topics == []


def test_null_and_empty_are_distinct() -> None:
    assert MetadataRequest(topics=None) != MetadataRequest(topics=[])
    assert MetadataRequest() == MetadataRequest(topics=[])


def test_colliding_struct_names_carry_their_message() -> None:
    assert VoteRequestTopicData.__slots__ == VoteResponseTopicData.__slots__ == ("topic_name", "partitions")


def test_repr_and_equality() -> None:
    partition = PartitionData(partition_index=3, records=b"abc")
    assert "partition_index=3" in repr(partition)
    assert "unknown_tags" not in repr(partition)
    assert partition == PartitionData(partition_index=3, records=memoryview(b"abc"))
    assert partition != PartitionData(partition_index=4)
    assert partition != 3
    assert FetchTopic().topic_id == ZERO_UUID
    with pytest.raises(TypeError):
        hash(partition)
    partition.unknown_tags = [(9, b"")]
    assert partition != PartitionData(partition_index=3, records=b"abc")
    assert "unknown_tags=[(9, b'')]" in repr(partition)


def test_schemas_keep_what_the_compiler_relies_on() -> None:
    for cls in all_messages():
        schema = binding_of(cls).schema
        for struct in (schema.root, *schema.structs.values()):
            for field in struct.fields:
                assert field.tag < 0 or field.type != "records", "the encoder would place records of a tagged field elsewhere"
                assert field.tag < 0 or field.tagged == field.versions
                assert field.tag < 0 or (field.struct is None or "records" not in [each.type for each in field.struct.fields])


def test_importing_the_room_imports_no_messages_and_no_compiler() -> None:
    program = "import sys, ottla.wire; print([name for name in sys.modules if name.startswith('ottla.wire.')])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "['ottla.wire.base', 'ottla.wire.codec']"
