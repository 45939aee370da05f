"""Checks of what each consumer got, in its order: nothing skipped, no way back, also when a group moves partitions.

Between two assignments a consumer goes forward, past no record. After one it begins at an offset of its group: not below the
last one that was committed, and past no record that no member of the group got. Groups begin at the start of each partition.
"""

from __future__ import annotations

from collections import defaultdict

from ottla.ids import TopicPartition
from ottla.sim.histories.facts import Facts, Finding
from ottla.sim.histories.history import Assigned, OffsetCommit, OffsetsFound, Poll


def polls(facts: Facts) -> list[Finding]:
    """Polls that skip records or go back, by process and across rebalances."""
    checked = _Polls(facts)
    for event in facts.history.events:
        if isinstance(event, Assigned):
            checked.assigned(event)
        elif isinstance(event, Poll):
            checked.polled(event)
    return checked.findings


class _Polls:
    """Where each consumer is."""

    def __init__(self, facts: Facts) -> None:
        self.findings: list[Finding] = []
        self._facts = facts
        self._commits = facts.history.of(OffsetCommit)
        self._last: defaultdict[str, dict[TopicPartition, int]] = defaultdict(dict)
        self._assigned_s: defaultdict[str, dict[TopicPartition, float]] = defaultdict(dict)
        self._handed: defaultdict[tuple[str, TopicPartition], set[int]] = defaultdict(set)
        """What members of a group have got."""

    def assigned(self, event: Assigned) -> None:
        for place in event.places:  # the others are read on
            self._last[event.process].pop(place, None)
            if event.group is None:  # it sought a place of its own choice
                self._assigned_s[event.process].pop(place, None)
            else:
                self._assigned_s[event.process][place] = event.at_s

    def polled(self, poll: Poll) -> None:
        last, fresh = self._last[poll.process], self._assigned_s[poll.process]
        for place, offset, _ in poll.records:
            if place in last:
                self._look_between(poll, place, last[place], offset)
            elif poll.group is not None and place in fresh:
                self._look_at_start(poll, poll.group, place, offset, fresh[place])
            last[place] = offset
            if poll.group is not None:
                self._handed[poll.group, place].add(offset)

    def _look_between(self, poll: Poll, place: TopicPartition, before: int, offset: int) -> None:
        if offset <= before:
            self._find("poll goes back", poll, f"offset {offset} of {place} after {before}")
        elif skipped := self._facts.readable(place, poll.is_committed, before + 1, offset):
            self._find("poll skips", poll, f"offset {offset} of {place} after {before}, without {_listed(skipped)}")

    def _look_at_start(self, poll: Poll, group: str, place: TopicPartition, offset: int, since_s: float) -> None:
        floor = max(
            (
                commit.offsets[place]
                for commit in self._commits
                if commit.group == group
                and place in commit.offsets
                and commit.answered_s is not None
                and commit.answered_s <= since_s
            ),
            default=0,
        )
        if offset < floor:
            self._find("poll goes back", poll, f"offset {offset} of {place}, after group {group} had committed {floor}")
        handed = self._handed[group, place]
        skipped = [each for each in self._facts.readable(place, poll.is_committed, 0, offset) if each not in handed]
        if skipped:
            text = f"offset {offset} of {place} first, and no member of {group} got {_listed(skipped)}"
            self._find("poll skips", poll, text)

    def _find(self, check: str, poll: Poll, text: str) -> None:
        self.findings.append(Finding(check, f"{poll.process} got {text}"))


def committed_offsets(facts: Facts) -> list[Finding]:
    """Committed offsets of a group never go back: an answer has what was acknowledged or answered before it was asked for.

    For groups that commit rising offsets, as consumers do that commit what they have read.
    """
    found = []
    answers = facts.history.of(OffsetsFound)
    commits = [each for each in facts.history.of(OffsetCommit) if each.answered_s is not None]
    for answer in answers:
        floors: dict[TopicPartition, int] = {}
        for commit in commits:
            if commit.group == answer.group and commit.answered_s is not None and commit.answered_s <= answer.asked_s:
                _raise_to(floors, commit.offsets)
        for earlier in answers:
            if earlier.group == answer.group and earlier.at_s <= answer.asked_s:
                _raise_to(floors, earlier.offsets)
        for place, offset in answer.offsets.items():
            if offset < floors.get(place, -1):
                text = f"group {answer.group} has {offset} for {place}, and had {floors[place]} before"
                found.append(Finding("committed offset goes back", text))
    return found


def _raise_to(floors: dict[TopicPartition, int], offsets: dict[TopicPartition, int]) -> None:
    for place, offset in offsets.items():
        floors[place] = max(floors.get(place, -1), offset)


def _listed(offsets: list[int]) -> str:
    shown = ", ".join(map(str, offsets[:5]))
    return f"{shown} and {len(offsets) - 5} more" if len(offsets) > 5 else shown
