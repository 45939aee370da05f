"""Deletion of offsets: on request, with their group, with their topic."""

import pytest
from tests.support.shards.offsets_shard import FixedTopics, OffsetsBench

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
    bench = OffsetsBench()
    bench.commit({("t", 0): 1, ("t", 1): 2, ("u", 0): 3})
    written = len(bench.log)
    codes = bench.delete([("t", 0), ("t", 2), ("t", 7), ("absent", 0)])
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {("t", 0): 0, ("t", 2): 0, ("t", 7): unknown, ("absent", 0): unknown}
    assert len(bench.log) == written + 1, "what was never committed needs no tombstone"
    assert bench.fetch(None) == {("t", 1): 2, ("u", 0): 3}


def test_offsets_are_not_deleted_while_members_read_the_topic() -> None:
    bench = OffsetsBench()
    bench.commit({("t", 0): 1, ("u", 0): 3})
    bench.put_group(stable_group("consumer", "t"))
    assert bench.delete([("t", 0), ("u", 0)]) == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("u", 0): 0}
    assert bench.fetch(None) == {("t", 0): 1}


def test_offsets_are_not_deleted_while_subscriptions_are_unknown() -> None:
    bench = OffsetsBench()
    bench.commit({("t", 0): 1})
    bench.put_group(stable_group("connect"))
    with pytest.raises(KafkaError) as refused:
        bench.delete([("t", 0)])
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_an_unknown_group_cannot_be_deleted() -> None:
    bench = OffsetsBench()
    with pytest.raises(KafkaError) as refused:
        bench.delete([("t", 0)])
    assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_open_transactions_are_deleted_too() -> None:
    bench = OffsetsBench()
    bench.commit_in_transaction(P, {("t", 0): 1, ("t", 1): 1})
    bench.delete([("t", 0)])
    bench.end(P, True)
    assert bench.fetch(None) == {("t", 1): 1}


def test_deleting_a_group_deletes_its_offsets() -> None:
    bench = OffsetsBench()
    bench.commit({("t", 0): 1})
    bench.commit({("t", 0): 2}, group_id="other")
    bench.commit_in_transaction(P, {("t", 0): 5, ("t", 1): 5})
    bench.delete_group()
    bench.end(P, True)
    assert bench.fetch(None) == {}
    assert list(bench.table.by_id) == ["other"]
    tombstones = [each for each in bench.log if each.key and each.value is None]
    assert len({each.key for each in tombstones}) == len(tombstones) == 3


def test_a_group_with_members_is_not_deleted() -> None:
    bench = OffsetsBench()
    bench.commit({("t", 0): 1})
    bench.put_group(stable_group("consumer", "t"))
    with pytest.raises(KafkaError) as refused:
        bench.delete_group()
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(KafkaError) as absent:
        bench.delete_group("absent")
    assert absent.value.code == ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.fetch(None) == {("t", 0): 1}


@pytest.mark.parametrize("unread_count", [0, 3])
def test_offsets_of_a_deleted_topic_are_deleted(unread_count: int) -> None:
    bench = OffsetsBench()
    bench.commit({("t", 0): 1, ("u", 1): 3})
    bench.commit({("t", 0): 2}, group_id="other")
    bench.commit_in_transaction(P, {("t", 3): 5})
    topic_id = bench.table.topics.id_of("t")
    assert topic_id is not None
    unread = [DeletedTopic(f"unread {number}", Uuid(b"\x09" * 16)) for number in range(unread_count)]
    bench.submit(bench.offsets.forget_topics([DeletedTopic("t", topic_id), *unread]))
    bench.end(P, True)
    assert bench.fetch(None) == {("u", 1): 3}
    assert bench.fetch(None, group_id="other") == {}


def test_offsets_of_a_new_topic_of_the_same_name_stay() -> None:
    bench = OffsetsBench()
    old = bench.table.topics.id_of("t")
    assert old is not None
    bench.commit({("t", 0): 1})
    bench.table.topics = FixedTopics({"t": 4}, first_id=50)
    bench.commit({("t", 1): 2})
    bench.submit(bench.offsets.forget_topics([DeletedTopic("t", old)]))
    assert bench.fetch(None) == {("t", 1): 2}


def test_a_topic_created_and_deleted_repeatedly_leaves_no_offsets() -> None:
    bench = OffsetsBench()
    deleted = []
    for number in (1, 50, 100):
        bench.table.topics = FixedTopics({"t": 4}, first_id=number)
        topic_id = bench.table.topics.id_of("t")
        assert topic_id is not None
        bench.commit({("t", number % 3): number})
        deleted.append(DeletedTopic("t", topic_id))
    bench.submit(bench.offsets.forget_topics(deleted[:2]))
    assert bench.fetch(None) == {("t", 1): 100}
    bench.submit(bench.offsets.forget_topics(deleted))
    assert bench.fetch(None) == {}
