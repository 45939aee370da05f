"""OffsetFetch, decided without a log."""

import pytest
from tests.support.shards.offsets_harness import FixedTopics, OffsetsHarness

from ottla.coordinator.contract import Producer
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics

P = Producer(7, 0)
UNSTABLE = -1000 - ErrorCode.UNSTABLE_OFFSET_COMMIT


class Members(ClassicGroup):
    """A group in which only one member may fetch."""

    __slots__ = ()

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if (member_id, member_epoch) != ("m", 5):
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "no")


def test_a_missing_offset_is_minus_one() -> None:
    harness = OffsetsHarness()
    assert harness.fetch({"t": [0, 9], "absent": [0]}) == {("t", 0): -1, ("t", 9): -1, ("absent", 0): -1}
    assert harness.fetch(None) == {}
    harness.commit({("t", 0): 3})
    assert harness.fetch({"t": [0, 1]}) == {("t", 0): 3, ("t", 1): -1}
    assert harness.fetch(None, group_id="other") == {}


def test_leader_epoch_and_metadata_are_returned() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 3}, metadata="noted")
    wanted = OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])])
    there, absent = harness.offsets.fetch(wanted, False, 9).topics[0].partitions
    assert (there.committed_offset, there.committed_leader_epoch, there.metadata) == (3, 3, "noted")
    assert (absent.committed_offset, absent.committed_leader_epoch, absent.metadata) == (-1, -1, "")


def test_unstable_until_the_transaction_ends() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 3})
    harness.commit_in_transaction(P, {("t", 0): 9, ("t", 1): 9})
    assert harness.fetch({"t": [0, 1, 2]}, require_stable=True) == {("t", 0): UNSTABLE, ("t", 1): UNSTABLE, ("t", 2): -1}
    assert harness.fetch(None, require_stable=True) == {("t", 0): UNSTABLE}
    assert harness.fetch({"t": [0, 1]}) == {("t", 0): 3, ("t", 1): -1}
    harness.end(P, False)
    assert harness.fetch({"t": [0, 1]}, require_stable=True) == {("t", 0): 3, ("t", 1): -1}


def test_two_transactions_at_once() -> None:
    harness = OffsetsHarness()
    other = Producer(8, 0)
    harness.commit_in_transaction(P, {("t", 0): 1})
    harness.commit_in_transaction(other, {("t", 0): 2})
    harness.end(P, True)
    assert harness.fetch({"t": [0]}, require_stable=True) == {("t", 0): UNSTABLE}
    harness.end(other, True)
    assert harness.fetch({"t": [0]}, require_stable=True) == {("t", 0): 2}


def test_by_topic_id() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 3, ("u", 1): 4})
    known, unknown = harness.table.topics.id_of("t"), Uuid(b"\x09" * 16)
    assert known is not None
    wanted = [OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in (known, unknown)]
    answer = harness.offsets.fetch(OffsetFetchRequestGroup(group_id="g", topics=wanted), False, 10)
    assert [(topic.topic_id, topic.partitions[0].committed_offset) for topic in answer.topics] == [(known, 3), (unknown, -1)]
    assert answer.topics[1].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_fetching_all_by_topic_id_omits_deleted_topics() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 3, ("u", 1): 4})
    harness.table.topics = FixedTopics({"u": 2})
    assert harness.fetch(None, version=10) == {("u", 1): 4}
    assert harness.fetch(None, version=9) == {("t", 0): 3, ("u", 1): 4}


def test_offsets_of_a_former_topic_of_the_name_are_not_returned() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 3})
    harness.commit_in_transaction(P, {("t", 1): 5})
    harness.end(P, True)
    harness.table.topics = FixedTopics({"t": 4}, first_id=50)
    topic_id = harness.table.topics.id_of("t")
    assert topic_id is not None
    wanted = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0, 1])]
    answer = harness.offsets.fetch(OffsetFetchRequestGroup(group_id="g", topics=wanted), False, 10)
    # An offset of a transaction has no topic id: it is returned.
    assert [each.committed_offset for each in answer.topics[0].partitions] == [-1, 5]
    assert harness.fetch({"t": [0]}, version=9) == {("t", 0): 3}


def test_a_stale_member_cannot_fetch() -> None:
    harness = OffsetsHarness()
    harness.put_group(Members("g"))
    assert harness.fetch({"t": [0]}, member_id="m", member_epoch=5) == {("t", 0): -1}
    with pytest.raises(KafkaError):
        harness.fetch({"t": [0]}, member_id="m", member_epoch=4)
