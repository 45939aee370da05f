"""In a generation of a classic group a partition has one owner, and members of older generations cannot commit.

A generation counts from the first SyncGroup answer with an assignment; before that a coordinator may lose it. If a group may
have been deleted, or removed because it had neither members nor offsets, its generations may begin again.
A static member that returns with a new member id stays the same owner in the same generation; its old member id is fenced.
"""

from __future__ import annotations

from collections import defaultdict
from math import inf

from ottla.sim.checkers.checker import Assigned, Checker, Commit, Deletion, Place, Violation


class Generations(Checker):
    """Remembers assignments, by group. `session_s`: after that long, groups may be removed; None: they are not."""

    def __init__(self, is_flushed: bool, session_s: float | None = None) -> None:
        self._session_s = session_s
        self._is_flushed = is_flushed
        self._owners: defaultdict[tuple[str, int], dict[Place, Assigned]] = defaultdict(dict)
        self._assigned: defaultdict[str, list[Assigned]] = defaultdict(list)
        self._deleted: defaultdict[str, dict[Deletion, float]] = defaultdict(dict)
        """Deletion → when it had certainly taken effect."""
        self.judged = 0

    def deletion_sent(self, deletion: Deletion) -> None:
        if deletion.place is None:
            self._deleted[deletion.group][deletion] = inf

    def deletion_acknowledged(self, deletion: Deletion, answered_s: float) -> None:
        if deletion.place is None:
            self._deleted[deletion.group][deletion] = answered_s

    def deletion_refused(self, deletion: Deletion) -> None:
        self._deleted[deletion.group].pop(deletion, None)

    def _may_be_another(self, before: Assigned, answered_s: float) -> bool:
        """Whether an answer at `answered_s` may come from a new group with the same name, created after `before`."""
        if self._session_s is not None and before.requested_s + self._session_s <= answered_s:
            return True
        deleted = self._deleted[before.group]
        return any(deletion.sent_s < answered_s and before.requested_s < done_s for deletion, done_s in deleted.items())

    def power_lost(self) -> None:
        if not self._is_flushed:
            self._owners.clear()
            self._assigned.clear()

    def generation_assigned(self, assigned: Assigned) -> None:
        group, generation = assigned.group, assigned.generation
        for before in self._assigned[group]:
            is_later = before.generation > generation and before.answered_s < assigned.requested_s
            if is_later and not self._may_be_another(before, assigned.answered_s):
                raise Violation(
                    f"group {group} was in generation {before.generation}, and then {assigned.member} was given a part in "
                    f"generation {generation}"
                )
        owners = self._owners[group, generation]
        who = assigned.instance or assigned.member
        for place in assigned.places:
            owner = owners.setdefault(place, assigned)
            name = owner.instance or owner.member
            if name != who and not self._may_be_another(owner, assigned.answered_s):
                raise Violation(f"in generation {generation} of group {group} both {name} and {who} were given {place}")
            owners[place] = assigned
        self._assigned[group].append(assigned)

    def commit_acknowledged(self, commit: Commit, places: list[Place], answered_s: float) -> None:
        if commit.protocol != "classic" or not places:
            return
        self.judged += 1
        known = self._assigned[commit.group]
        for each in known:
            is_over = each.answered_s < commit.sent_s and each.generation > commit.epoch
            if is_over and not self._may_be_another(each, answered_s):
                raise Violation(
                    f"{commit.member} committed for group {commit.group} in generation {commit.epoch}, after {each.member} was "
                    f"given its part in generation {each.generation}"
                )
        own_s = max((each.answered_s for each in known if each.member == commit.member), default=0.0)
        for each in known:
            is_other = commit.instance is not None and each.instance == commit.instance and each.member != commit.member
            is_fenced = is_other and own_s < each.requested_s and each.answered_s < commit.sent_s
            if is_fenced and not self._may_be_another(each, answered_s):
                raise Violation(f"{commit.member} committed for group {commit.group}, after {each.member} had taken its place")
