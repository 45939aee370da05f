"""Apache's class names, short names and Python paths of serializers, partitioners and assignors."""

import json

import pytest

from ottla.config.client.classes import (
    ASSIGNORS,
    PARTITIONERS,
    SERIALIZERS,
    PythonPath,
    assignor,
    load,
    partitioner,
    serializer,
)
from ottla.config.values import InvalidConfig
from ottla.errors import ConfigError

SERIALIZATION = "org.apache.kafka.common.serialization."


@pytest.mark.parametrize(
    ("java", "ours"),
    [
        ("String", "str"),
        ("ByteArray", "bytes"),
        ("ByteBuffer", "bytes"),
        ("Bytes", "bytes"),
        ("Short", "int16"),
        ("Integer", "int32"),
        ("Long", "int64"),
        ("Float", "float32"),
        ("Double", "float64"),
        ("Boolean", "bool"),
        ("UUID", "uuid"),
        ("Void", "void"),
    ],
)
def test_apaches_serializers_are_mapped_to_ours(java: str, ours: str) -> None:
    assert ours in SERIALIZERS
    assert serializer("value.serializer", f"{SERIALIZATION}{java}Serializer") == ours
    assert serializer("key.deserializer", f"class {SERIALIZATION}{java}Deserializer") == ours


def test_a_deserializer_is_refused_where_a_serializer_belongs() -> None:
    with pytest.raises(InvalidConfig, match="takes a serializer; write str"):
        serializer("key.serializer", f"{SERIALIZATION}StringDeserializer")


@pytest.mark.parametrize("name", SERIALIZERS)
def test_short_names_of_serializers_stay(name: str) -> None:
    assert serializer("key.serializer", f" {name.upper()} ") == name


def test_words_that_people_try_are_understood() -> None:
    assert serializer("key.serializer", "string") == "str"
    assert serializer("key.serializer", "int") == "int64"


@pytest.mark.parametrize(
    ("value", "ours"),
    [
        (None, "default"),
        ("", "default"),
        ("org.apache.kafka.clients.producer.internals.DefaultPartitioner", "default"),
        ("class org.apache.kafka.clients.producer.RoundRobinPartitioner", "roundrobin"),
        ("roundrobin", "roundrobin"),
    ],
)
def test_partitioners(value: str | None, ours: str) -> None:
    assert ours in PARTITIONERS
    assert partitioner("partitioner.class", value) == ours


def test_the_retired_partitioner_is_explained() -> None:
    with pytest.raises(InvalidConfig, match=r"partitioner\.ignore\.keys=true"):
        partitioner("partitioner.class", "org.apache.kafka.clients.producer.UniformStickyPartitioner")


@pytest.mark.parametrize(
    ("java", "ours"),
    [("Range", "range"), ("RoundRobin", "roundrobin"), ("Sticky", "sticky"), ("CooperativeSticky", "cooperative-sticky")],
)
def test_assignors(java: str, ours: str) -> None:
    assert ours in ASSIGNORS
    assert assignor("partition.assignment.strategy", f"org.apache.kafka.clients.consumer.{java}Assignor") == ours
    assert assignor("partition.assignment.strategy", ours) == ours


def test_objects_pass_through() -> None:
    own = object()
    assert serializer("key.serializer", own) is own
    assert serializer("key.serializer", str.encode) is str.encode
    assert partitioner("partitioner.class", own) is own
    assert assignor("partition.assignment.strategy", own) is own


@pytest.mark.parametrize("text", ["json:dumps", "json.dumps"])
def test_a_python_path_stays_a_path_until_it_is_loaded(text: str) -> None:
    path = serializer("value.serializer", text)
    assert path == PythonPath("json", "dumps")
    assert load("value.serializer", path) is json.dumps


def test_a_nested_name_is_loaded() -> None:
    assert load("value.serializer", serializer("value.serializer", "json:JSONEncoder.encode")) is json.JSONEncoder.encode


def test_load_leaves_everything_else_alone() -> None:
    assert load("value.serializer", "json") == "json"
    assert load("value.serializer", str.encode) is str.encode


@pytest.mark.parametrize("text", ["com.example.MySerializer", "io.confluent.kafka.serializers.KafkaAvroSerializer"])
def test_an_unknown_java_class_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"Java class.*package\.module:Name"):
        serializer("value.serializer", text)


def test_a_misspelt_short_name_is_corrected() -> None:
    with pytest.raises(InvalidConfig, match="did you mean cooperative-sticky"):
        assignor("partition.assignment.strategy", "coperative-sticky")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("no_such_module_anywhere:Name", "cannot import no_such_module_anywhere.*install it"),
        ("json:dumpz", "json has no dumpz; did you mean dump"),
        ("json:JSONEncoder.zzzzqqqq", "has no zzzzqqqq: give the name"),
    ],
)
def test_a_path_that_cannot_be_loaded_says_why(path: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        load("value.serializer", serializer("value.serializer", path))
    assert refused.value.setting == "value.serializer"
