"""Bytes made with Apache Kafka's own classes: decoded here to the same values, and encoded again to the same bytes."""

import gzip
from collections import defaultdict
from pathlib import Path

import pytest
from tests.support.cases.wire_golden import PATH, Golden, golden_cases
from tests.support.cases.wire_messages import all_messages, versions_of
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.wire import decode_all, encode_bytes, interpreter
from ottla.wire.base import Message
from ottla.wire.binding import binding_of
from ottla.wire.codec import join_parts
from ottla.wire.json_form import to_json

MAKER = Path(__file__).parents[3] / "tools/golden/MakeWireGolden.java"

BY_MESSAGE: dict[type[Message], list[Golden]] = defaultdict(list)
for case in golden_cases():
    BY_MESSAGE[case.cls].append(case)


@pytest.mark.parametrize("cls", list(BY_MESSAGE), ids=lambda cls: cls.__name__)
def test_reads_and_writes_what_apache_kafka_writes(cls: type[Message]) -> None:
    for golden in BY_MESSAGE[cls]:
        message = decode_all(cls, golden.version, golden.data)
        where = f"{cls.__name__} version {golden.version} {golden.fill}"
        assert to_json(message, golden.version) == golden.json, where
        assert encode_bytes(message, golden.version) == golden.data, where
        assert interpreter.decode(binding_of(cls), golden.version, golden.data) == (message, len(golden.data)), where
        assert join_parts(interpreter.encode(binding_of(cls), golden.version, message)) == golden.data, where


def test_every_message_and_version_is_covered() -> None:
    covered = {(golden.cls, golden.version) for golden in golden_cases()}
    assert covered == {(cls, version) for cls in all_messages() for version in versions_of(cls)}
    assert {golden.fill for golden in golden_cases()} == {"defaults", "set", "nulls", "extremes", "empty"}


def test_unknown_tagged_fields_are_kept() -> None:
    extremes = [golden for golden in golden_cases() if golden.fill == "extremes"]
    kept = [decode_all(golden.cls, golden.version, golden.data).unknown_tags for golden in extremes]
    assert [(1000, b"\x01\x02\x03"), (70000, b"")] in kept
    assert None in kept


@pytest.mark.slow
def test_golden_file_is_what_apache_kafka_writes_today(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    made = tmp_path / "made.gz"
    apache_kafka.run_java(MAKER, made)
    assert gzip.decompress(made.read_bytes()) == gzip.decompress(PATH.read_bytes())
