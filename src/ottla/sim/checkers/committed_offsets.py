"""An acknowledged offset commit is found by every later OffsetFetch, until a later commit replaces it.

Several clients may commit for a group at once, and answers get lost. Only this is certain: of two commits, the second is later
if it was sent after the first was acknowledged or seen. An OffsetFetch must not find the first if the second was acknowledged
or seen before the request was sent. It must not find an offset that was never committed or was refused, nor no offset at all.
A deletion counts as a commit of no offset.

A coordinator that is deposed and cannot know it yet answers from what it has, in Kafka too: that answer is not judged, and the
checker learns nothing from it.

Unused offsets may expire when the wall clock moves far enough, mostly because it is set forward.

A power loss may lose what was not flushed: then any earlier commit may be what is left, until one is seen again.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import inf

from ottla.sim.checkers.checker import Checker, Commit, Deletion, Place, Violation

NOTHING = -1


@dataclass(slots=True)
class _Known:
    """One commit or deletion: when it was sent, and by when it had certainly taken effect."""

    sent_s: float
    done_s: float = inf


class CommittedOffsets(Checker):
    """Remembers every commit and every deletion. `is_flushed`: coordinators flush before they answer.

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
            self._known[commit.group, place][offset] = _Known(commit.sent_s)

    def commit_acknowledged(self, commit: Commit, places: list[Place], answered_s: float) -> None:
        for place in places:
            known = self._known[commit.group, place][commit.offsets[place]]
            known.done_s = min(known.done_s, answered_s)

    def commit_refused(self, commit: Commit, places: list[Place]) -> None:
        for place in places:
            self._known[commit.group, place].pop(commit.offsets[place], None)

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
                for known in commits.values():
                    known.done_s = inf
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
