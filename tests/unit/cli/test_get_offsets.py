"""`ottla get-offsets`: partitions, places and times, and error responses."""

import pytest
from tests.support.nodes.fake_node import FakeNode, all_versions
from tests.unit.cli.conftest import RunOttla

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


@pytest.fixture
def offsets(node: FakeNode) -> FakeNode:
    """Partition 0 ends at 10; partition 1 has no such offset."""

    def answer(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        found = [
            ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=-1 if each.partition_index else 10)
            for each in request.topics[0].partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=found)])

    node.handlers[ListOffsetsRequest] = answer
    return node


@pytest.mark.parametrize(
    ("when", "timestamp"),
    [("latest", -1), ("-2", -2), ("max-timestamp", -3), ("earliest-pending-upload", -6), ("1700000000000", 1_700_000_000_000)],
)
def test_places_and_times_become_timestamps(ottla: RunOttla, offsets: FakeNode, when: str, timestamp: int) -> None:
    assert ottla("get-offsets", "orders", "--time", when).lines == ["orders:0:10"]
    (request,) = offsets.asked_for(ListOffsetsRequest)
    assert {each.timestamp for each in request.topics[0].partitions} == {timestamp}


@pytest.mark.parametrize(
    ("flags", "partitions"),
    [
        (("--topic", "ord.*"), [0, 1]),
        (("--partitions", "1"), [1]),
        (("--topic-partitions", "orders"), [0, 1]),
        (("--topic-partitions", "orders:1"), [1]),
        (("--topic-partitions", ":-1"), [0]),
        (("--topic-partitions", "o.*:1-"), [1]),
        (("--topic-partitions", "orders:0-1,orders:1"), [0, 1]),
    ],
)
def test_flags_select_partitions(ottla: RunOttla, offsets: FakeNode, flags: tuple[str, ...], partitions: list[int]) -> None:
    assert ottla("get-offsets", *flags).rc == 0
    (request,) = offsets.asked_for(ListOffsetsRequest)
    assert [each.partition_index for each in request.topics[0].partitions] == partitions


def test_partition_with_an_error_is_left_out(ottla: RunOttla, node: FakeNode) -> None:
    def answer(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        found = [
            ListOffsetsPartitionResponse(partition_index=0, offset=3),
            ListOffsetsPartitionResponse(partition_index=1, error_code=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=found)])

    node.handlers[ListOffsetsRequest] = answer
    said = ottla("get-offsets", "orders")
    assert (said.rc, said.lines) == (1, ["orders:0:3"])
    assert "orders-1 is left out" in said.err


def test_old_broker_without_the_place_is_reported(ottla: RunOttla, offsets: FakeNode) -> None:
    offsets.served = all_versions(ListOffsets=(1, 6))
    assert ottla("get-offsets", "orders").lines == ["orders:0:10"]
    old = ottla("get-offsets", "orders", "--time", "max-timestamp")
    assert (old.rc, "is too old to find this kind of offset" in " ".join(old.err.split())) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("absent",), 1, "topic absent does not exist"),
        (("--topic", "absent"), 1, "no partition matches"),
        (("--time", "-7"), 2, "--time -7 is not a place"),
        (("--time", "soon"), 2, "--time does not understand"),
        (("--partitions", "x"), 2, "--partitions takes numbers"),
        (("--topic", "("), 2, "regular expression"),
        (("--topic-partitions", "a:b"), 2, "--topic-partitions does not understand"),
        (("--topic-partitions", "a", "orders"), 2, "--topic-partitions names topics and partitions"),
        (("orders", "--topic", "orders"), 2, "not both"),
    ],
)
def test_wrong_usage(ottla: RunOttla, offsets: FakeNode, arguments: tuple[str, ...], code: int, said: str) -> None:
    refused = ottla("get-offsets", *arguments)
    assert refused.rc == code
    assert said in " ".join(refused.err.split())
