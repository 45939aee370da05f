"""Where `ottla consume` starts and ends, as ListOffsets answers."""

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


@pytest.fixture(autouse=True)
def empty(node: FakeNode) -> None:
    """Both partitions are empty, with offset 5 next; no record is late enough for any time."""

    def answer(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        found = [
            ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=5 if each.timestamp < 0 else -1)
            for each in request.topics[0].partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=found)])

    node.handlers[ListOffsetsRequest] = answer


@pytest.mark.parametrize("flags", [("--from-beginning",), ("--from-time", "1h"), ("--offset", "5", "--partition", "0"), ()])
def test_empty_partitions_are_at_their_end(ottla: RunOttla, flags: tuple[str, ...]) -> None:
    said = ottla("consume", "orders", "--until-end", *flags)
    assert (said.rc, said.err) == (0, "Processed a total of 0 messages\n")


@pytest.mark.parametrize(("reset", "place"), [("earliest", "first"), ("latest", "end")])
@pytest.mark.parametrize("offset", ["4", "6"])
def test_offset_outside_the_log_is_replaced(ottla: RunOttla, offset: str, reset: str, place: str) -> None:
    flags = ("--partition", "1", "--offset", offset, "--until-end", "--command-property", f"auto.offset.reset={reset}")
    said = ottla("consume", "orders", *flags)
    assert f"partition orders-1 has no offset {offset}: going on from the {place}, 5" in said.err


def test_missing_topics_and_partitions_are_named(ottla: RunOttla) -> None:
    assert "topic absent does not exist" in ottla("consume", "orders", "absent").err
    assert "no topic matches 'x.*'" in ottla("consume", "--include", "x.*").err
    assert ottla("consume", "orders", "--partition", "2").rc == 1
