"""Offsets and groups as users pass them."""

from typing import Any, NamedTuple

import pytest

from ottla.client.producer.calls import as_group, as_offsets
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.ids import TopicPartition


class Position(NamedTuple):
    offset: int
    metadata: str | None
    leader_epoch: int | None


def test_offsets_are_numbers_or_positions() -> None:
    given = {("t", 0): 5, TopicPartition("t", 1): OffsetAndMetadata(6, "m", 2), ("u", 0): Position(7, None, None)}
    assert as_offsets(given) == {
        ("t", 0): OffsetAndMetadata(5),
        ("t", 1): OffsetAndMetadata(6, "m", 2),
        ("u", 0): OffsetAndMetadata(7),
    }


@pytest.mark.parametrize(
    ("offsets", "error"), [({"t": 5}, TypeError), ({("t", 0): -1}, ValueError), ({("t", 0): "5"}, ValueError)]
)
def test_wrong_offsets_are_named(offsets: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="t"):
        as_offsets(offsets)


def test_a_group_is_an_id_or_a_member() -> None:
    member = ConsumerGroupMetadata("g", 3, "m", "i")
    assert as_group("g") == ConsumerGroupMetadata("g", -1, "", None)
    assert as_group(member) is member


def test_another_thing_as_group_is_refused_at_the_call() -> None:
    with pytest.raises(TypeError, match=r"group_metadata\(\) returns, not 7"):
        as_group(7)
