"""A member of a consumer group gets a partition only after its previous owner released it, or may have been fenced.

A member may have been fenced if more than a session timeout has passed since it sent the last heartbeat that its coordinator
heard. One that is deposed, and cannot know it yet, answers too, but the next coordinator does not hear of it. One that loads
the group answers every Heartbeat with success, as Apache Kafka's does: also those of members that are fenced in its log. The
members here release partitions at once, so the rebalance timeout never expires. A member that lost a partition to another
cannot commit for it, except in its current epoch if it has not had it there: coordinators, Apache Kafka's too, accept every
partition in the current epoch of a member. A member's epochs rise.

The same holds for groups with members of both protocols. Their classic members release all partitions before they join again.
Members keep their ids, so one that may have been fenced may join a new group with the same name in an early epoch.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ottla.sim.checkers.checker import Beat, Checker, Commit, Place, Violation


@dataclass(slots=True)
class _Member:
    """The partitions that a member holds, each with the time of the last answer that said so, and its last heartbeat."""

    held: dict[Place, float] = field(default_factory=dict)
    had: set[Place] = field(default_factory=set)
    """What it has held in its epoch, at any time."""
    epoch: int = 0
    since_s: float = 0.0
    """When it got this epoch."""
    heard_s: float = 0.0


class MemberEpochs(Checker):
    """Remembers which member holds which partition, by group."""

    def __init__(self, is_flushed: bool, session_s: float) -> None:
        self._is_flushed = is_flushed
        self._session_s = session_s
        self._members: defaultdict[str, dict[str, _Member]] = defaultdict(dict)
        self._given: defaultdict[tuple[str, Place], list[Beat]] = defaultdict(list)
        self.handovers = 0

    def power_lost(self) -> None:
        if not self._is_flushed:
            self._members.clear()
            self._given.clear()

    def given_up(self, group: str, member: str, places: list[Place]) -> None:
        held = self._members[group].setdefault(member, _Member()).held
        for place in places:
            held.pop(place, None)

    def member_fenced(self, group: str, member: str) -> None:
        self._members[group].pop(member, None)

    def heartbeat_answered(self, beat: Beat) -> None:
        members = self._members[beat.group]
        own = members.setdefault(beat.member, _Member())
        may_be_new = beat.is_joined and beat.answered_s >= own.heard_s + self._session_s
        if beat.epoch < own.epoch and not may_be_new:
            raise Violation(f"{beat.member} of group {beat.group} was in epoch {own.epoch}, and then in {beat.epoch}")
        if beat.is_joined and not beat.places:
            own.held.clear()  # who joins says that it holds nothing: another answer, to a commit, said that it was fenced
        if beat.epoch != own.epoch:
            own.since_s = beat.answered_s
            own.had = set(own.held)
        own.epoch = beat.epoch
        if beat.is_heard:
            own.heard_s = beat.requested_s
        for place in beat.places or ():
            if place not in own.held:
                self._take(beat, place)
            own.held[place] = beat.answered_s
            own.had.add(place)

    def _take(self, beat: Beat, place: Place) -> None:
        self.handovers += len(self._given[beat.group, place]) > 0
        self._given[beat.group, place].append(beat)
        for name, other in self._members[beat.group].items():
            if name == beat.member or place not in other.held or other.held[place] >= beat.requested_s:
                continue
            if beat.answered_s < other.heard_s + self._session_s:
                raise Violation(
                    f"group {beat.group} gave {place} to {beat.member}, while {name} has it: its last heartbeat was "
                    f"{beat.answered_s - other.heard_s:.3f} s before, and it had not released it"
                )
            del other.held[place]  # it is fenced, but does not know yet

    def commit_acknowledged(self, commit: Commit, places: list[Place], answered_s: float) -> None:
        if commit.protocol != "consumer":
            return
        own = self._members[commit.group].get(commit.member)
        if own is not None and own.epoch != commit.epoch:
            own = None
        if own is not None and all(place in own.held for place in places):
            return
        is_member = own is not None and answered_s < own.heard_s + self._session_s
        for place in places:
            if own is not None and is_member and place not in own.had:
                continue  # from an epoch of the same number, in a group that is gone: the coordinator cannot tell them apart
            given = self._given[commit.group, place]
            own_s = max((beat.answered_s for beat in given if beat.member == commit.member), default=0.0)
            for beat in given:
                # Epochs start again after a group was empty: then an old epoch may equal the current one.
                is_present = own is not None and own.since_s > beat.requested_s
                is_other = beat.member != commit.member and not is_present
                if is_other and own_s < beat.requested_s and beat.answered_s < commit.sent_s:
                    raise Violation(
                        f"{commit.member} committed for {place} of group {commit.group} in epoch {commit.epoch}, after "
                        f"{beat.member} had been given it in epoch {beat.epoch}"
                    )
