"""Subscriptions and assignments behind their version."""

import pytest

from ottla.errors import DecodeError
from ottla.wire.consumer_protocol import NEWEST_VERSION, read_assignment, read_subscription, version_of, write
from ottla.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

ASSIGNED = ConsumerProtocolAssignment(
    assigned_partitions=[ConsumerProtocolAssignmentTopicPartition(topic="t", partitions=[1, 2])]
)


@pytest.mark.parametrize("version", range(NEWEST_VERSION + 1))
def test_what_is_written_is_read_in_its_version(version: int) -> None:
    subscription = write(ConsumerProtocolSubscription(topics=["a", "b"], rack_id="r"), version)
    assert version_of(subscription) == version
    assert read_subscription(subscription).topics == ["a", "b"]
    assert read_subscription(subscription).rack_id == ("r" if version == NEWEST_VERSION else None)
    assert read_subscription(subscription, 0).rack_id is None
    (part,) = read_assignment(write(ASSIGNED, version)).assigned_partitions
    assert (part.topic, part.partitions) == ("t", [1, 2])


def test_a_newer_version_is_read_as_the_newest_known_one() -> None:
    data = (NEWEST_VERSION + 1).to_bytes(2, "big") + write(ASSIGNED)[2:] + b"fields of a later version"
    assert version_of(data) == NEWEST_VERSION
    assert read_assignment(data).assigned_partitions[0].topic == "t"


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff\x00", b"\x00\x01\x00\x00"])
def test_bytes_that_are_neither_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_assignment(data)
