"""The checkers of members, each with a shortest sequence of events that violates its invariant, and one that does not."""

import pytest

from ottla.ids import Uuid
from ottla.sim.checkers.checker import Assigned, Beat, Checker, Commit, Deletion, Place, TopicPlan, Violation
from ottla.sim.checkers.groups import Generations, MemberEpochs

AT = Place(TopicPlan("t", Uuid(bytes(16)), 1), 0)
SESSION_S = 1.0


def commit(
    offset: int, sent_s: float, *, protocol: str = "simple", member: str = "a", epoch: int = 1, instance: str | None = None
) -> Commit:
    return Commit("g", protocol, member, instance, epoch, {AT: offset}, sent_s)


def acknowledge(checker: Checker, made: Commit, answered_s: float) -> None:
    checker.commit_sent(made)
    checker.commit_acknowledged(made, [AT], answered_s)


def assigned(generation: int, member: str, requested_s: float, *, instance: str | None = None, holds: bool = True) -> Assigned:
    return Assigned("g", generation, member, instance, [AT] if holds else [], requested_s, requested_s + 0.1)


def beat(member: str, epoch: int, requested_s: float, *, places: list[Place] | None = None, is_joined: bool = False) -> Beat:
    return Beat("g", member, epoch, places, requested_s, requested_s + 0.1, is_joined)


# Generations


def test_generations_may_restart_when_a_group_may_be_removed() -> None:
    checker = Generations(is_flushed=True, session_s=SESSION_S)
    checker.generation_assigned(assigned(3, "a", 1.0))
    with pytest.raises(Violation, match="was in generation 3"):
        checker.generation_assigned(assigned(1, "b", 1.5))
    checker.generation_assigned(assigned(1, "b", 3.0))


def test_generations_restart_after_a_deletion() -> None:
    checker = Generations(is_flushed=True)
    checker.generation_assigned(assigned(3, "a", 1.0))
    checker.deletion_sent(deletion := Deletion("g", None, 2.0))
    checker.deletion_acknowledged(deletion, 2.1)
    checker.generation_assigned(assigned(1, "b", 3.0))
    acknowledge(checker, commit(5, 3.5, protocol="classic", member="b"), 3.6)
    checker.generation_assigned(assigned(2, "b", 4.0))
    with pytest.raises(Violation, match="was in generation 2, and then b was given a part in generation 1"):
        checker.generation_assigned(assigned(1, "b", 5.0))
    checker.generation_assigned(assigned(3, "b", 6.0))
    with pytest.raises(Violation, match="in generation 3 of group g both b and c were given t-0"):
        checker.generation_assigned(assigned(3, "c", 6.0))


def test_a_generation_has_one_owner_of_a_partition() -> None:
    checker = Generations(is_flushed=True)
    checker.generation_assigned(assigned(1, "a", 1.0))
    checker.generation_assigned(assigned(2, "b", 2.0))
    with pytest.raises(Violation, match="in generation 2 of group g both b and c were given t-0"):
        checker.generation_assigned(assigned(2, "c", 2.0))


def test_generations_rise() -> None:
    checker = Generations(is_flushed=True)
    checker.generation_assigned(assigned(2, "a", 2.0))
    checker.generation_assigned(assigned(1, "a", 2.05))  # the answer was delayed
    with pytest.raises(Violation, match="was in generation 2, and then b was given a part in generation 1"):
        checker.generation_assigned(assigned(1, "b", 3.0))


def test_older_generations_commit_nothing() -> None:
    checker = Generations(is_flushed=True)
    checker.generation_assigned(assigned(1, "a", 1.0))
    checker.generation_assigned(assigned(2, "b", 2.0))
    acknowledge(checker, commit(5, 2.05, protocol="classic", epoch=1), 3.0)
    with pytest.raises(Violation, match="a committed for group g in generation 1, after b was given its part in generation 2"):
        acknowledge(checker, commit(6, 2.2, protocol="classic", epoch=1), 3.0)


def test_a_static_member_has_one_member_id() -> None:
    checker = Generations(is_flushed=True)
    checker.generation_assigned(assigned(1, "old", 1.0, instance="i"))
    checker.generation_assigned(assigned(1, "new", 2.0, instance="i"))
    acknowledge(checker, commit(5, 3.0, protocol="classic", member="new", instance="i"), 3.1)
    with pytest.raises(Violation, match="old committed for group g, after new had taken its place"):
        acknowledge(checker, commit(6, 3.0, protocol="classic", member="old", instance="i"), 3.1)


def test_a_power_loss_may_lose_unflushed_generations() -> None:
    for is_flushed in (True, False):
        checker = Generations(is_flushed)
        checker.generation_assigned(assigned(2, "a", 1.0))
        checker.power_lost()
        if is_flushed:
            with pytest.raises(Violation):
                checker.generation_assigned(assigned(1, "b", 2.0))
        else:
            checker.generation_assigned(assigned(1, "b", 2.0))


# Members of consumer groups


def test_a_partition_is_given_after_it_was_given_up() -> None:
    checker = MemberEpochs(True, SESSION_S)
    checker.heartbeat_answered(beat("a", 1, 1.0, places=[AT]))
    checker.given_up("g", "a", [AT])
    checker.heartbeat_answered(beat("b", 2, 1.2, places=[AT]))
    assert checker.handovers == 1
    with pytest.raises(
        Violation, match=r"gave t-0 to c, while b has it: its last heartbeat was 0\.300 s before, and it had not released it"
    ):
        checker.heartbeat_answered(beat("c", 3, 1.4, places=[AT]))


def test_a_partition_is_given_when_its_owner_was_silent_or_fenced() -> None:
    checker = MemberEpochs(True, SESSION_S)
    checker.heartbeat_answered(beat("a", 1, 1.0, places=[AT]))
    checker.heartbeat_answered(beat("b", 2, 2.0, places=[AT]))
    checker.member_fenced("g", "b")
    checker.heartbeat_answered(beat("a", 2, 2.2, places=[AT]))
    checker.heartbeat_answered(beat("a", 2, 3.0))
    with pytest.raises(Violation, match="while a has it"):
        checker.heartbeat_answered(beat("b", 3, 3.5, places=[AT]))


def test_member_that_joins_again_holds_nothing() -> None:
    checker = MemberEpochs(True, SESSION_S)
    checker.heartbeat_answered(beat("a", 1, 1.0, places=[AT]))
    checker.heartbeat_answered(beat("a", 1, 1.2, places=[])._replace(is_joined=True))
    checker.heartbeat_answered(beat("b", 2, 1.3, places=[AT]))
    with pytest.raises(Violation, match="while b has it"):
        checker.heartbeat_answered(beat("a", 3, 1.6, places=[AT]))


def test_a_heartbeat_that_the_coordinator_did_not_hear_extends_no_session() -> None:
    checker = MemberEpochs(True, SESSION_S)
    checker.heartbeat_answered(beat("a", 1, 1.0, places=[AT]))
    checker.heartbeat_answered(beat("a", 1, 1.5)._replace(is_heard=False))
    checker.heartbeat_answered(beat("b", 2, 2.0, places=[AT]))
    checker.heartbeat_answered(beat("b", 2, 2.5))
    with pytest.raises(Violation, match="gave t-0 to c, while b has it"):
        checker.heartbeat_answered(beat("c", 3, 3.0, places=[AT]))


def test_member_epochs_rise() -> None:
    checker = MemberEpochs(True, SESSION_S)
    checker.heartbeat_answered(beat("a", 2, 1.0))
    with pytest.raises(Violation, match="a of group g was in epoch 2, and then in 1"):
        checker.heartbeat_answered(beat("a", 1, 2.0))


def test_a_member_that_lost_a_partition_cannot_commit_for_it() -> None:
    checker = MemberEpochs(True, SESSION_S)
    checker.heartbeat_answered(beat("a", 1, 1.0, places=[AT]))
    acknowledge(checker, commit(5, 1.2, protocol="consumer", epoch=1), 1.3)
    checker.heartbeat_answered(beat("b", 2, 3.0, places=[AT]))
    acknowledge(checker, commit(6, 3.05, protocol="consumer", epoch=1), 3.3)
    acknowledge(checker, commit(7, 3.2, protocol="consumer", member="b", epoch=2), 3.3)
    with pytest.raises(Violation, match="a committed for t-0 of group g in epoch 1, after b had been given it in epoch 2"):
        acknowledge(checker, commit(8, 3.2, protocol="consumer", epoch=1), 3.3)


def test_a_power_loss_may_lose_unflushed_members() -> None:
    checker = MemberEpochs(False, SESSION_S)
    checker.heartbeat_answered(beat("a", 2, 1.0, places=[AT]))
    checker.power_lost()
    checker.heartbeat_answered(beat("b", 1, 1.1, places=[AT]))


def test_joining_again_after_the_session_may_give_an_early_epoch() -> None:
    checker = MemberEpochs(is_flushed=True, session_s=SESSION_S)
    checker.heartbeat_answered(beat("a", 5, 1.0))
    with pytest.raises(Violation, match="was in epoch 5, and then in 1"):
        checker.heartbeat_answered(beat("a", 1, 1.5, is_joined=True))
    with pytest.raises(Violation, match="was in epoch 5, and then in 1"):
        checker.heartbeat_answered(beat("a", 1, 3.0))
    checker.heartbeat_answered(beat("a", 1, 3.0, is_joined=True))


def test_commits_are_allowed_when_restarted_epochs_equal_old_ones() -> None:
    checker = MemberEpochs(is_flushed=True, session_s=SESSION_S)
    checker.heartbeat_answered(beat("a", 2, 1.0, places=[AT]))
    checker.member_fenced("g", "a")
    checker.heartbeat_answered(beat("b", 2, 3.0, places=[AT]))
    with pytest.raises(Violation, match="a committed for t-0 of group g in epoch 2, after b had been given it in epoch 2"):
        acknowledge(checker, commit(5, 3.5, protocol="consumer", epoch=2), 3.6)
    checker.heartbeat_answered(beat("a", 2, 4.0))
    acknowledge(checker, commit(6, 4.5, protocol="consumer", epoch=2), 4.6)


def test_a_member_may_commit_in_its_epoch_for_what_it_had_in_one_of_the_same_number() -> None:
    """Seed 6781: both epochs were 2, and b got the partition in the second one after a had joined."""
    checker = MemberEpochs(is_flushed=True, session_s=SESSION_S)
    checker.heartbeat_answered(beat("a", 2, 1.0, places=[AT]))
    checker.member_fenced("g", "a")
    checker.heartbeat_answered(beat("a", 2, 4.0, places=[], is_joined=True))
    checker.heartbeat_answered(beat("b", 2, 4.2, places=[AT]))
    acknowledge(checker, commit(5, 4.5, protocol="consumer", epoch=2), 4.6)
    with pytest.raises(Violation, match="a committed for t-0 of group g in epoch 2, after b had been given it in epoch 2"):
        acknowledge(checker, commit(6, 5.0, protocol="consumer", epoch=2), 5.1)  # it may have been fenced
    checker.heartbeat_answered(beat("a", 2, 5.2))
    acknowledge(checker, commit(7, 5.5, protocol="consumer", epoch=2), 5.6)
    checker.heartbeat_answered(beat("a", 3, 6.0))
    with pytest.raises(Violation, match="in epoch 2, after b had been given it in epoch 2"):
        acknowledge(checker, commit(8, 6.2, protocol="consumer", epoch=2), 6.3)


def test_a_member_cannot_commit_for_what_it_lost_in_its_epoch() -> None:
    checker = MemberEpochs(is_flushed=True, session_s=SESSION_S)
    checker.heartbeat_answered(beat("a", 1, 1.0, places=[AT]))
    checker.heartbeat_answered(beat("a", 2, 1.2))
    checker.given_up("g", "a", [AT])
    checker.heartbeat_answered(beat("b", 2, 1.4, places=[AT]))
    checker.heartbeat_answered(beat("a", 2, 1.6))
    with pytest.raises(Violation, match="a committed for t-0 of group g in epoch 2, after b had been given it in epoch 2"):
        acknowledge(checker, commit(5, 1.8, protocol="consumer", epoch=2), 1.9)
