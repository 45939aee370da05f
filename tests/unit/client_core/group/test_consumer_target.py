"""The target of a KIP-848 member: give up first, then take, and wait only for topics that are not known."""

from __future__ import annotations

from tests.support.shards.fake_metadata import FakeMetadata, topic_id_of

from ottla.client_core.group.consumer_target import ConsumerTarget
from ottla.client_core.group.handover import Handover
from ottla.client_core.group.membership import Assign, Event, Lost, Revoke, ServerRegex
from ottla.client_core.group.subscribed_topics import SubscribedTopics
from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.consumer_group_heartbeat import Assignment, ConsumerGroupHeartbeatResponseTopicPartitions


def partitions(topic: str, *indexes: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, index) for index in indexes)


class Member:
    """A target with what is around it, and an owner that handles events at once."""

    def __init__(self, **counts: int) -> None:
        self.metadata = FakeMetadata(**counts)
        self.handover = Handover()
        self.topics = SubscribedTopics(self.metadata, exclude_internal=True)
        self.target = ConsumerTarget(self.handover, self.metadata, self.topics)

    def assign(self, by_id: dict[Uuid, list[int]]) -> list[Event]:
        given = [ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=each, partitions=has) for each, has in by_id.items()]
        self.target.set(Assignment(topic_partitions=given))
        return self.advance()

    def advance(self) -> list[Event]:
        """Go on until the target has nothing more to do."""
        events: list[Event] = []
        for _ in range(5):
            self.target.advance()
            taken = self.handover.take_events()
            events += taken
            self.handover.revoked()
            self.handover.assignment_taken()
            if not taken:
                break
        return events


def test_first_target_is_assigned_and_reached() -> None:
    member = Member(t=3)
    assert not member.target.is_reached
    assert member.assign({topic_id_of("t"): [2, 0]}) == [Assign(partitions("t", 0, 2), partitions("t", 0, 2))]
    assert member.target.is_reached
    assert member.target.held() == {topic_id_of("t"): (0, 2)}


def test_empty_first_target_is_an_assignment_of_nothing() -> None:
    member = Member()
    assert member.assign({}) == [Assign(frozenset(), frozenset())]
    assert member.target.is_reached


def test_same_target_again_is_no_event() -> None:
    member = Member(t=2)
    member.assign({topic_id_of("t"): [0]})
    assert member.assign({topic_id_of("t"): [0]}) == []
    assert member.target.is_reached


def test_partitions_are_given_up_before_new_ones_are_taken() -> None:
    member = Member(t=2, u=1)
    member.assign({topic_id_of("t"): [0, 1]})
    events = member.assign({topic_id_of("t"): [1], topic_id_of("u"): [0]})
    has = partitions("t", 1) | partitions("u", 0)
    assert events == [Revoke(partitions("t", 0)), Assign(has, partitions("u", 0))]


def test_nothing_is_taken_while_the_owner_gives_up() -> None:
    member = Member(t=2)
    member.assign({topic_id_of("t"): [0]})
    member.target.set(
        Assignment(topic_partitions=[ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id_of("t"), partitions=[1])])
    )
    member.target.advance()
    assert member.handover.take_events() == [Revoke(partitions("t", 0))]
    assert not member.target.is_reached
    assert member.target.held() == {topic_id_of("t"): (0,)}


def test_unknown_topic_is_asked_for_and_does_not_hold_up_the_rest() -> None:
    member = Member(t=1)
    events = member.assign({topic_id_of("t"): [0], topic_id_of("later"): [0]})
    assert events == [Assign(partitions("t", 0), partitions("t", 0))]
    assert not member.target.is_reached
    assert len(member.metadata.refreshes) == 1
    assert member.advance() == []
    assert len(member.metadata.refreshes) == 1, "each response is waited for once"
    member.metadata.full_responses += 1
    assert member.advance() == []
    assert len(member.metadata.refreshes) == 2
    member.metadata.put("later", [()])
    has = partitions("t", 0) | partitions("later", 0)
    assert member.advance() == [Assign(has, partitions("later", 0))]
    assert member.target.is_reached


def test_first_target_of_unknown_topics_only_waits() -> None:
    member = Member()
    assert member.assign({topic_id_of("later"): [0]}) == []
    assert not member.target.is_reached


def test_topic_created_again_is_given_up_and_taken_with_its_new_id() -> None:
    member = Member(t=1)
    member.assign({topic_id_of("t"): [0]})
    again = Uuid(b"t again.........")
    member.metadata.put("t", [()], topic_id=again)
    assert member.target.held() == {topic_id_of("t"): (0,)}, "the member still owns the old one"
    events = member.assign({again: [0]})
    assert events == [Revoke(partitions("t", 0)), Assign(partitions("t", 0), partitions("t", 0))]
    assert member.target.held() == {again: (0,)}


def test_topic_that_left_the_metadata_keeps_its_name_while_it_is_owned() -> None:
    member = Member(t=2)
    member.assign({topic_id_of("t"): [0]})
    del member.metadata.topics["t"]
    assert member.assign({topic_id_of("t"): [0, 1]}) == [Assign(partitions("t", 0, 1), partitions("t", 1))]


def test_reset_forgets_the_target() -> None:
    member = Member(t=1)
    member.assign({topic_id_of("t"): [0]})
    member.handover.lose("evicted")
    member.target.reset()
    assert member.advance() == [Lost(partitions("t", 0), "evicted")]
    assert not member.target.is_reached
    assert member.target.held() == {}
    assert member.assign({topic_id_of("t"): [0]}) == [Assign(partitions("t", 0), partitions("t", 0))]


def test_pattern_of_the_coordinator_takes_its_names_from_the_target() -> None:
    member = Member(t=1)
    member.topics.set(ServerRegex("t.*"))
    member.assign({topic_id_of("t"): [0], topic_id_of("t2"): [0]})
    assert member.metadata.is_all_wanted
    member.metadata.put("t2", [()])
    member.advance()
    assert member.topics.names == {"t", "t2"}
    assert not member.metadata.is_all_wanted
