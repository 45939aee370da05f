"""Deletion of offsets: on request, with their group, with their topic."""

import pytest
from tests.support.shards.offsets_harness import FixedTopics, OffsetsHarness

from ottla.coordinator.contract import Instant, Producer
from ottla.coordinator.groups.classic.group import STABLE, ClassicGroup
from ottla.coordinator.groups.topics import DeletedTopic
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid

P = Producer(7, 0)


def stable_group(protocol_type: str, *subscribed: str) -> ClassicGroup:
    group = ClassicGroup("g")
    group.protocol_type = protocol_type
    group.subscribed = frozenset(subscribed)
    group.move_to(STABLE, Instant(0, 0))
    return group


def test_offsets_are_deleted() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1, ("t", 1): 2, ("u", 0): 3})
    written = len(harness.log)
    codes = harness.delete([("t", 0), ("t", 2), ("t", 7), ("absent", 0)])
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {("t", 0): 0, ("t", 2): 0, ("t", 7): unknown, ("absent", 0): unknown}
    assert len(harness.log) == written + 1, "what was never committed needs no tombstone"
    assert harness.fetch(None) == {("t", 1): 2, ("u", 0): 3}


def test_offsets_are_not_deleted_while_members_read_the_topic() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1, ("u", 0): 3})
    harness.put_group(stable_group("consumer", "t"))
    assert harness.delete([("t", 0), ("u", 0)]) == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("u", 0): 0}
    assert harness.fetch(None) == {("t", 0): 1}


def test_offsets_are_not_deleted_while_subscriptions_are_unknown() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1})
    harness.put_group(stable_group("connect"))
    with pytest.raises(KafkaError) as refused:
        harness.delete([("t", 0)])
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_an_unknown_group_cannot_be_deleted() -> None:
    harness = OffsetsHarness()
    with pytest.raises(KafkaError) as refused:
        harness.delete([("t", 0)])
    assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_open_transactions_are_deleted_too() -> None:
    harness = OffsetsHarness()
    harness.commit_in_transaction(P, {("t", 0): 1, ("t", 1): 1})
    harness.delete([("t", 0)])
    harness.end(P, True)
    assert harness.fetch(None) == {("t", 1): 1}


def test_deleting_a_group_deletes_its_offsets() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1})
    harness.commit({("t", 0): 2}, group_id="other")
    harness.commit_in_transaction(P, {("t", 0): 5, ("t", 1): 5})
    harness.delete_group()
    harness.end(P, True)
    assert harness.fetch(None) == {}
    assert list(harness.table.by_id) == ["other"]
    tombstones = [each for each in harness.log if each.key and each.value is None]
    assert len({each.key for each in tombstones}) == len(tombstones) == 3


def test_a_group_with_members_is_not_deleted() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1})
    harness.put_group(stable_group("consumer", "t"))
    with pytest.raises(KafkaError) as refused:
        harness.delete_group()
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(KafkaError) as absent:
        harness.delete_group("absent")
    assert absent.value.code == ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.fetch(None) == {("t", 0): 1}


@pytest.mark.parametrize("unread_count", [0, 3])
def test_offsets_of_a_deleted_topic_are_deleted(unread_count: int) -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1, ("u", 1): 3})
    harness.commit({("t", 0): 2}, group_id="other")
    harness.commit_in_transaction(P, {("t", 3): 5})
    topic_id = harness.table.topics.id_of("t")
    assert topic_id is not None
    unread = [DeletedTopic(f"unread {number}", Uuid(b"\x09" * 16)) for number in range(unread_count)]
    harness.submit(harness.offsets.forget_topics([DeletedTopic("t", topic_id), *unread]))
    harness.end(P, True)
    assert harness.fetch(None) == {("u", 1): 3}
    assert harness.fetch(None, group_id="other") == {}


def test_offsets_of_a_new_topic_of_the_same_name_stay() -> None:
    harness = OffsetsHarness()
    old = harness.table.topics.id_of("t")
    assert old is not None
    harness.commit({("t", 0): 1})
    harness.table.topics = FixedTopics({"t": 4}, first_id=50)
    harness.commit({("t", 1): 2})
    harness.submit(harness.offsets.forget_topics([DeletedTopic("t", old)]))
    assert harness.fetch(None) == {("t", 1): 2}


def test_a_topic_created_and_deleted_repeatedly_leaves_no_offsets() -> None:
    harness = OffsetsHarness()
    deleted = []
    for number in (1, 50, 100):
        harness.table.topics = FixedTopics({"t": 4}, first_id=number)
        topic_id = harness.table.topics.id_of("t")
        assert topic_id is not None
        harness.commit({("t", number % 3): number})
        deleted.append(DeletedTopic("t", topic_id))
    harness.submit(harness.offsets.forget_topics(deleted[:2]))
    assert harness.fetch(None) == {("t", 1): 100}
    harness.submit(harness.offsets.forget_topics(deleted))
    assert harness.fetch(None) == {}
