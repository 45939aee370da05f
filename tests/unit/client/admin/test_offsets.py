"""Offsets by place and time, and deletion of records."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode, all_versions

from ottla.client.admin.offsets import OffsetSpec
from ottla.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError, UnsupportedVersionError
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T0 = 1_700_000_000_000


def test_offsets_are_found_by_place_and_time(
    admin: Any, name: str, create: Callable[..., Any], produce: Callable[..., None]
) -> None:
    create({name: 3})
    produce(name, b"a", b"b", b"c", timestamp=T0)
    places = {(name, 0): "latest", (name, 1): OffsetSpec.EARLIEST, (name, 2): "latest", ("missing-topic", 0): "latest"}
    results = admin.list_offsets(places)
    assert [results[key].offset for key in list(places)[:3]] == [3, 0, 0]
    assert isinstance(results.errors["missing-topic", 0], UnknownTopicOrPartitionError)
    for spec, offset, timestamp in (
        ("earliest", 0, -1),
        ("max-timestamp", 2, T0 + 2),
        ("earliest_local", 0, -1),
        (T0 + 1, 1, T0 + 1),
        (datetime.fromtimestamp((T0 + 2) / 1000, UTC), 2, T0 + 2),
        (T0 + 3, -1, -1),
    ):
        found = admin.list_offsets({(name, 0): spec})[name, 0]
        assert (found.offset, found.timestamp) == (offset, timestamp), spec
    assert admin.list_offsets({(name, 0): "latest"}, isolation_level="read_committed")[name, 0].offset == 3


def test_records_are_deleted_up_to_an_offset(
    admin: Any, name: str, create: Callable[..., Any], produce: Callable[..., None]
) -> None:
    create({name: 3})
    for partition in range(3):
        produce(name, b"a", b"b", b"c", partition=partition)
    results = admin.delete_records({(name, 0): 2, (name, 1): -1, (name, 2): 9, ("missing-topic", 0): 0})
    assert (results[name, 0], results[name, 1]) == (2, 3)
    assert isinstance(results.errors[name, 2], OffsetOutOfRangeError)
    assert isinstance(results.errors["missing-topic", 0], UnknownTopicOrPartitionError)
    assert admin.list_offsets({(name, 0): "earliest"})[name, 0].offset == 2


def test_broker_that_is_too_old_for_a_place_is_told_by_an_error(scripted: Any, node: FakeNode) -> None:
    node.served = all_versions(ListOffsets=(1, 6))
    node.handlers[MetadataRequest] = lambda request, version: MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="localhost", port=9092)],
        topics=[MetadataResponseTopic(name="orders", partitions=[MetadataResponsePartition(leader_id=1)])],
    )
    results = scripted.list_offsets({("orders", 0): "max_timestamp"})
    assert isinstance(results.errors["orders", 0], UnsupportedVersionError)


def test_leader_that_is_gone_is_looked_up_again(scripted: Any, node: FakeNode) -> None:
    leaders = iter([2, 1])

    def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
        partition = MetadataResponsePartition(leader_id=next(leaders, 1))
        brokers = [MetadataResponseBroker(node_id=number, host=f"host{number}", port=9092) for number in (1, 2)]
        brokers[0].host = "localhost"
        return MetadataResponse(brokers=brokers, topics=[MetadataResponseTopic(name="orders", partitions=[partition])])

    node.handlers[MetadataRequest] = metadata
    node.handlers[ListOffsetsRequest] = lambda request, version: ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(name="orders", partitions=[ListOffsetsPartitionResponse(offset=7)])]
    )
    assert scripted.list_offsets({("orders", 0): "latest"})["orders", 0].offset == 7


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda admin: admin.list_offsets({("a", 0): "middle"}), ValueError, "partitions.*is 'middle'"),
        (lambda admin: admin.list_offsets({("a", 0): -9}), ValueError, "partitions.*is -9"),
        (lambda admin: admin.list_offsets({("a", 0): datetime(2026, 1, 1)}), ValueError, "partitions.*without a time zone"),
        (lambda admin: admin.list_offsets({"a": 0}), TypeError, "partitions: a partition is"),
        (lambda admin: admin.list_offsets({("a", 0): 0}, isolation_level="x"), ValueError, "isolation_level is 'x'"),
        (lambda admin: admin.delete_records({("a", 0): -2}), ValueError, "offsets.*is -2"),
        (lambda admin: admin.delete_records([("a", 0)]), TypeError, "offsets must be a mapping"),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(scripted)
