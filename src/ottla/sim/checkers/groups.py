"""Invariants of groups: committed offsets, generations of classic groups, member epochs of consumer groups."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import inf

from ottla.sim.checkers.checker import Assigned, Beat, Checker, Commit, Deletion, Place, Violation

NOTHING = -1


@dataclass(slots=True)
class _Known:
    """One commit or deletion: when it was sent, and by when it had certainly taken effect."""

    sent_s: float
    done_s: float = inf
    earlier: _Known | None = None
    """The same offset in an earlier request, which was not answered and may have taken effect."""


class CommittedOffsets(Checker):
    """An acknowledged offset commit is found by every later OffsetFetch, until a later commit replaces it.

    Several clients may commit for a group at once, and answers get lost. Only this is certain: of two commits, the second is
    later if it was sent after the first was acknowledged or seen. An OffsetFetch must not find the first if the second was
    acknowledged or seen before the request was sent. It must not find an offset that was never committed or was refused, nor no
    offset at all. A deletion counts as a commit of no offset.

    A coordinator that is deposed and cannot know it yet answers from what it has, in Kafka too: that answer is not judged, and
    the checker learns nothing from it.

    Unused offsets may expire when the wall clock moves far enough, mostly because it is set forward.

    A power loss may lose what was not flushed: then any earlier commit may be what is left, until one is seen again.

    Remembers every commit and every deletion. `is_flushed`: coordinators flush before they answer.

    `retention_s` is how long unused offsets are kept, by the node's wall clock; None: they do not expire in a run.
    """

    def __init__(self, is_flushed: bool, retention_s: float | None = None) -> None:
        self._is_flushed = is_flushed
        self._retention_s = retention_s
        self._clock: list[tuple[float, float]] = [(0.0, 0.0)]
        """(virtual time, error of the wall clock from then on)."""
        self._known: defaultdict[tuple[str, Place], dict[int, _Known]] = defaultdict(dict)
        self._deleted: defaultdict[str, dict[Deletion, _Known]] = defaultdict(dict)
        self.judged = 0
        self.missed = 0
        self.excused = 0
        """How many answers of deposed coordinators were not judged."""

    def commit_sent(self, commit: Commit) -> None:
        for place, offset in commit.offsets.items():
            # Also if it is known: an app commits the same offset again after an aborted transaction, and a client whose first
            # request was not answered, though another client may have seen its effect.
            commits = self._known[commit.group, place]
            commits[offset] = _Known(commit.sent_s, earlier=commits.get(offset))

    def commit_acknowledged(self, commit: Commit, places: list[Place], answered_s: float) -> None:
        for place in places:
            known = self._known[commit.group, place][commit.offsets[place]]
            known.done_s = min(known.done_s, answered_s)

    def commit_refused(self, commit: Commit, places: list[Place]) -> None:
        for place in places:
            commits, offset = self._known[commit.group, place], commit.offsets[place]
            refused = commits.pop(offset, None)
            if refused is not None and refused.earlier is not None:
                commits[offset] = refused.earlier

    def deletion_sent(self, deletion: Deletion) -> None:
        self._deleted[deletion.group][deletion] = _Known(deletion.sent_s)

    def deletion_acknowledged(self, deletion: Deletion, answered_s: float) -> None:
        if (known := self._deleted[deletion.group].get(deletion)) is not None:
            known.done_s = min(known.done_s, answered_s)

    def deletion_refused(self, deletion: Deletion) -> None:
        self._deleted[deletion.group].pop(deletion, None)

    def clock_set(self, off_s: float, at_s: float) -> None:
        self._clock.append((at_s, off_s))

    def power_lost(self) -> None:
        if not self._is_flushed:
            for commits in self._known.values():
                for offset, known in commits.items():
                    commits[offset] = _Known(known.sent_s, earlier=known.earlier and _Known(known.earlier.sent_s))
            self._deleted.clear()  # whether undone or not, none of them can still take effect

    def offsets_answered(
        self, group: str, found: dict[Place, int], requested_s: float, answered_s: float, is_deposed: bool = False
    ) -> None:
        if is_deposed:
            self.excused += 1
            return
        for place, offset in found.items():
            commits = self._known[group, place]
            done = {each: known for each, known in commits.items() if known.done_s < requested_s}
            self.judged += len(done) > 0
            if offset == NOTHING:
                if done:
                    self._explain_nothing(group, place, done, requested_s, answered_s)
                continue
            known = commits.get(offset)
            if known is None:
                raise Violation(f"group {group} has {offset} for {place}, which was never committed, or was refused")
            for later, one in done.items():
                if one.sent_s > known.done_s:
                    raise Violation(
                        f"group {group} went back to {offset} for {place}: {later} was committed after it and acknowledged"
                    )
            for deletion, one in self._deleted[group].items():
                is_meant = deletion.place in (None, place) and one.done_s < requested_s
                if is_meant and one.sent_s > known.done_s:
                    raise Violation(
                        f"group {group} went back to {offset} for {place}: it was deleted, and that was acknowledged"
                    )
            known.done_s = min(known.done_s, answered_s)

    def _explain_nothing(
        self, group: str, place: Place, done: dict[int, _Known], requested_s: float, answered_s: float
    ) -> None:
        """The last change must have been a deletion, or a commit that has expired."""
        self.missed += 1
        deleted = [known for each, known in self._deleted[group].items() if each.place in (None, place)]
        expired = [known for known in self._known[group, place].values() if self._may_have_expired(known, answered_s)]
        last = [each for each in (*deleted, *expired) if all(one.sent_s <= each.done_s for one in done.values())]
        if not last:
            raise Violation(f"group {group} has no offset for {place}, though {min(done)} was committed and acknowledged")
        if len(last) == 1 and last[0] in deleted:
            last[0].done_s = min(last[0].done_s, answered_s)
        # Either way, an earlier offset must not return.
        self._deleted[group][Deletion(group, place, requested_s)] = _Known(requested_s, answered_s)

    def _may_have_expired(self, commit: _Known, answered_s: float) -> bool:
        """Whether the wall clock has moved by the retention time since the commit was sent, by running or by being set."""
        if self._retention_s is None:
            return False
        lowest_s, most_s = inf, 0.0
        for index, (at_s, off_s) in enumerate(self._clock):
            end_s = self._clock[index + 1][0] if index + 1 < len(self._clock) else inf
            start_s, end_s = max(at_s, commit.sent_s), min(end_s, answered_s)
            if start_s <= end_s:
                lowest_s = min(lowest_s, start_s + off_s)
                most_s = max(most_s, end_s + off_s - lowest_s)
        return most_s >= self._retention_s


class Generations(Checker):
    """In a generation of a classic group a partition has one owner, and members of older generations cannot commit.

    A generation counts from the first SyncGroup answer with an assignment; before that a coordinator may lose it. If a group
    may have been deleted, or removed because it had neither members nor offsets, its generations may begin again. A static
    member that returns with a new member id stays the same owner in the same generation; its old member id is fenced.

    Remembers assignments, by group. `session_s`: after that long, groups may be removed; None: they are not.
    """

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
    """A member of a consumer group gets a partition only after its previous owner released it, or may have been fenced.

    A member may have been fenced if more than a session timeout has passed since it sent the last heartbeat that its
    coordinator heard. One that is deposed, and cannot know it yet, answers too, but the next coordinator does not hear of it.
    One that loads the group answers every Heartbeat with success, as Apache Kafka's does: also those of members that are fenced
    in its log. The members here release partitions at once, so the rebalance timeout never expires. A member that lost a
    partition to another cannot commit for it, except in its current epoch if it has not had it there: coordinators, Apache
    Kafka's too, accept every partition in the current epoch of a member. A member's epochs rise.

    The same holds for groups with members of both protocols. Their classic members release all partitions before they join
    again. Members keep their ids, so one that may have been fenced may join a new group with the same name in an early epoch.
    """

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
