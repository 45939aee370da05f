"""What both protocols have in common: `test_classic_member.py` and `test_consumer_member.py` test the rest."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.shards.fake_metadata import FakeMetadata

from ottla.client_core.group.base_member import NO_GENERATION, PATTERN_WAIT_MS, BaseMember, Handover, Identity, SubscribedTopics
from ottla.client_core.group.membership import NO_PARTITIONS, Assign, LeaveOption, Lost, Revoke, ServerRegex
from ottla.ids import TopicPartition


class Wanted:
    """A coordinator that counts how often it is looked for."""

    def __init__(self) -> None:
        self.count = 0

    def want(self) -> None:
        self.count += 1


def member(coordinator: Any = None) -> BaseMember:
    settings: Any = SimpleNamespace(
        group_id="g",
        group_instance_id="i",
        exclude_internal_topics=True,
        retry_backoff_ms=1,
        retry_backoff_max_ms=1,
        max_poll_interval_ms=300,
    )
    metadata: Any = SimpleNamespace(
        full_responses=3, want=lambda names: None, unwant=lambda names: None, want_all=lambda on: None
    )
    return BaseMember(settings, metadata, coordinator, lambda limit: 0, "me")


def test_a_member_is_nobody_before_it_joins() -> None:
    made = member()
    assert (made.group_id, made.group_instance_id, made.member_id) == ("g", "i", "me")
    assert made.assigned == frozenset()
    assert made.take_events() == []
    assert made.subscribed_topics == frozenset()


def test_it_joins_with_the_first_poll_after_a_subscription() -> None:
    coordinator = Wanted()
    made = member(coordinator)
    made._want_to_join()
    assert coordinator.count == 0
    made.subscribe(frozenset({"t"}), 1_000)
    assert made._pattern_until_ms == 1_000 + PATTERN_WAIT_MS
    assert not made._is_wanted
    made._want_to_join()
    made._want_to_join()
    assert (made._is_wanted, coordinator.count) == (True, 1)


def test_leaving_forgets_the_subscription() -> None:
    made = member(Wanted())
    made.subscribe(frozenset({"t"}), 0)
    made._want_to_join()
    made.leave(0, LeaveOption.REMAIN_IN_GROUP)
    assert made._topics.subscription is None
    assert made._leave_as is LeaveOption.REMAIN_IN_GROUP
    assert not made._is_wanted


def test_a_member_without_polls_says_which_setting_to_raise() -> None:
    made = member(Wanted())
    made.subscribe(frozenset({"t"}), 0)
    reason = made._leave_as_unpolled()
    assert "no poll for max.poll.interval.ms=300" in reason
    assert made._leave_as is LeaveOption.DEFAULT
    assert made._topics.subscription is not None  # it joins again at the next poll


# The handover of partitions: whose turn it is, and what cancels it.

T0, T1, T2 = (TopicPartition("t", index) for index in range(3))


def owning(*partitions: TopicPartition) -> Handover:
    handover = Handover()
    handover.assign(frozenset(partitions))
    handover.assignment_taken()
    handover.take_events()
    return handover


def test_assignment_counts_at_once_and_waits_for_the_owner() -> None:
    handover = owning(T0)
    handover.assign(frozenset({T0, T1}))
    assert handover.assigned == {T0, T1}
    assert handover.is_owners_turn
    assert handover.take_events() == [Assign(frozenset({T0, T1}), frozenset({T1}))]
    handover.assignment_taken()
    assert not handover.is_owners_turn


def test_empty_assignment_is_an_event_too() -> None:
    handover = Handover()
    handover.assign(NO_PARTITIONS)
    assert handover.take_events() == [Assign(NO_PARTITIONS, NO_PARTITIONS)]


def test_partitions_stay_assigned_until_the_owner_has_given_them_up() -> None:
    handover = owning(T0, T1)
    assert handover.revoke(frozenset({T1, T2}))
    assert handover.take_events() == [Revoke(frozenset({T1}))], "only what it has"
    assert handover.assigned == {T0, T1}
    handover.assignment_taken()
    assert handover.is_owners_turn, "that was not the answer to a Revoke"
    handover.revoked()
    assert handover.assigned == {T0}
    assert not handover.is_owners_turn


def test_revoking_what_the_member_does_not_have_is_no_event() -> None:
    handover = owning(T0)
    assert not handover.revoke(frozenset({T1}))
    assert not handover.is_owners_turn
    assert handover.take_events() == []


def test_loss_cancels_the_owners_turn_and_late_answers_are_ignored() -> None:
    handover = owning(T0, T1)
    handover.revoke(frozenset({T1}))
    handover.lose("evicted")
    assert handover.take_events() == [Revoke(frozenset({T1})), Lost(frozenset({T0, T1}), "evicted")]
    assert not handover.is_owners_turn
    handover.revoked()
    handover.assignment_taken()
    assert handover.assigned == NO_PARTITIONS


def test_loss_of_nothing_is_no_event() -> None:
    handover = Handover()
    handover.lose("evicted")
    assert handover.take_events() == []


def test_events_are_taken_once() -> None:
    handover = owning(T0)
    handover.lose("evicted")
    assert len(handover.take_events()) == 1
    assert handover.take_events() == []


@given(st.lists(st.tuples(st.sampled_from(["revoke", "assign", "taken", "lose"]), st.sets(st.integers(0, 4)))))
def test_what_the_owner_has_follows_from_the_events(steps: list[tuple[str, set[int]]]) -> None:
    handover, owned = Handover(), NO_PARTITIONS
    for step, indexes in steps:
        partitions = frozenset(TopicPartition("t", index) for index in indexes)
        if step == "revoke" and not handover.is_owners_turn:
            handover.revoke(partitions)
            handover.revoked()
        elif step == "assign" and not handover.is_owners_turn:
            handover.assign(handover.assigned | partitions)
        elif step == "taken":
            handover.assignment_taken()
        elif step == "lose":
            handover.lose("evicted")
        for event in handover.take_events():
            if isinstance(event, Revoke):
                assert event.partitions <= owned
                owned -= event.partitions
            elif isinstance(event, Assign):
                assert event.added == event.partitions - owned
                owned = event.partitions
            elif isinstance(event, Lost):
                assert event.partitions == owned
                owned = NO_PARTITIONS
        assert handover.assigned == owned


# The topics of a subscription: names, patterns, and which metadata they want.


@pytest.fixture
def metadata() -> FakeMetadata:
    metadata = FakeMetadata(t=1, u=1)
    metadata.put("__internal", [()], is_internal=True)
    return metadata


def subscribed(metadata: FakeMetadata, *, exclude_internal: bool = True) -> SubscribedTopics:
    return SubscribedTopics(metadata, exclude_internal=exclude_internal)


def test_names_are_taken_as_given_and_wanted(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(["t", "later", "__internal"])
    assert topics.names == metadata.wanted == {"t", "later", "__internal"}
    assert topics.matches("later")
    assert not topics.matches("u")
    assert not metadata.is_all_wanted


def test_changed_names_unwant_those_that_went(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(["t", "u"])
    topics.set(["u", "v"])
    assert metadata.wanted == {"u", "v"}
    topics.set(None)
    assert metadata.wanted == topics.names == frozenset()


def test_pattern_matches_whole_names_and_wants_all_topics(metadata: FakeMetadata) -> None:
    metadata.put("tt", [()])
    topics = subscribed(metadata)
    topics.set(re.compile("t|u"))
    assert topics.names == {"t", "u"}
    assert metadata.is_all_wanted
    assert metadata.wanted == set()


def test_pattern_skips_internal_topics_unless_they_are_asked_for(metadata: FakeMetadata) -> None:
    for exclude_internal, expected in ((True, {"t", "u"}), (False, {"t", "u", "__internal"})):
        topics = subscribed(metadata, exclude_internal=exclude_internal)
        topics.set(re.compile(".*"))
        assert topics.names == expected


def test_name_of_an_internal_topic_is_not_skipped(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(["__internal"])
    assert topics.matches("__internal")


def test_pattern_is_matched_again_with_newer_metadata_only(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(re.compile("t.*"))
    topics.include(["t-new", "other"])
    topics.refresh()
    assert topics.names == {"t", "t-new"}, "the same metadata: what an assignment brought stays"
    metadata.put("t2", [()])
    topics.refresh()
    assert topics.names == {"t", "t2"}


def test_new_pattern_is_matched_with_the_metadata_that_is_there(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(re.compile("t"))
    topics.set(re.compile("u"))
    assert topics.names == {"u"}


def test_pattern_that_ends_no_longer_wants_all(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(re.compile("t"))
    topics.set(["u"])
    assert not metadata.is_all_wanted
    assert metadata.wanted == topics.names == {"u"}


def test_topics_of_other_members_are_wanted_as_well(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(["t"])
    topics.want_also(["u"])
    assert metadata.wanted == {"t", "u"}
    assert topics.names == {"t"}
    topics.want_also(())
    assert metadata.wanted == {"t"}


def test_pattern_of_the_coordinator_has_the_topics_of_the_assignment(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(ServerRegex("t.*"))
    assert topics.names == frozenset()
    assert topics.matches("anything"), "the coordinator decides"
    topics.want_by_id(["t"], is_complete=False)
    assert metadata.is_all_wanted, "a topic known by its id only may have any name"
    topics.want_by_id(["t", "t2"], is_complete=True)
    assert not metadata.is_all_wanted
    assert topics.names == metadata.wanted == {"t", "t2"}


def test_assigned_topics_do_not_change_a_subscription_by_names(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(["t"])
    topics.want_by_id(["u"], is_complete=False)
    assert topics.names == metadata.wanted == {"t"}
    assert not metadata.is_all_wanted


# A member's identity: when it counts as a member, and what forgetting leaves.


def test_new_identity_is_no_member() -> None:
    identity = Identity("g", None)
    assert not identity.is_member
    assert identity.now == ("", NO_GENERATION)


def test_generation_makes_it_a_member() -> None:
    identity = Identity("g", "i", "m")
    identity.generation = 0
    assert identity.is_member, "KIP-848 joins with epoch 0"


def test_now_differs_after_a_change_of_either_part() -> None:
    identity = Identity("g", None, "m")
    seen = {identity.now}
    identity.generation = 1
    seen.add(identity.now)
    identity.member_id = "n"
    seen.add(identity.now)
    assert len(seen) == 3


def test_forgetting_drops_the_generation_and_the_id_unless_it_is_kept() -> None:
    identity = Identity("g", "i", "m")
    identity.generation = 4
    identity.forget(keeps_id=True)
    assert (identity.member_id, identity.is_member) == ("m", False)
    identity.generation = 4
    identity.forget()
    assert (identity.member_id, identity.is_member) == ("", False)
    assert (identity.group_id, identity.group_instance_id) == ("g", "i")
