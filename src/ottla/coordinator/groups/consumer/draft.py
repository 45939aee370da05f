"""GroupDraft: a decision about one consumer group in progress, with its records and the group after their replay.

Decisions must not change the group, but their steps build on each other: a member subscribes, the group's topics change, a new
target is computed, the member gets its assignment. The draft applies each record to a copy, made with the first record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.coordinator.contract import Answer, CoordinatorRecord, Effects
from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.coordinator.groups.consumer.replaying import apply


class GroupDraft:
    """Read `group` again after each write: the first one replaces it by a copy."""

    __slots__ = ("_is_copy", "_later", "answers", "group", "records")

    def __init__(self, group: ConsumerGroup, *, is_new: bool = False) -> None:
        self.group = group
        self._is_copy = is_new
        self.records: list[CoordinatorRecord] = []
        self.answers: list[Answer] = []
        """Answers to parked requests of the classic group that this one replaces."""
        self._later: list[Callable[[], None]] = []

    def write(self, records: Iterable[CoordinatorRecord]) -> None:
        """Add `records` to the decision, and apply them to the copy: later steps build on them."""
        for record in records:
            if not self._is_copy:
                self.group, self._is_copy = self.group.copy(), True
            self.records.append(record)
            apply(self.group, record)

    def write_last(self, record: CoordinatorRecord) -> None:
        """Add a record that no later step builds on. It is not applied, so a decision with no other record needs no copy."""
        self.records.append(record)

    def when_decided(self, change: Callable[[], None]) -> None:
        """Run `change` on `finish`: for state that is in no record."""
        self._later.append(change)

    def finish(self) -> Effects:
        """Complete the decision: run the changes of `when_decided`, return records and answers."""
        for change in self._later:
            change()
        return Effects(self.records, self.answers)
