"""The handover of partitions: whose turn it is, and what cancels it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.client_core.group.handover import Handover
from ottla.client_core.group.membership import NO_PARTITIONS, Assign, Lost, Revoke
from ottla.ids import TopicPartition

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
