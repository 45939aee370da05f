"""A decision about one group while it is made: the records so far, and the group as it will be when they are replayed.

Decisions must not change the group, but one step builds on another: a member subscribes, so the group's topics change, so there
is a new target, so the member is told of it. The draft applies each record to a copy, made when the first is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.coordinator.contract import Answer, CoordinatorRecord, Effects
from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.coordinator.groups.consumer.replaying import apply


class Draft:
    """`group` is to be read between writes, and not to be kept."""

    __slots__ = ("_is_copy", "_later", "answers", "group", "records")

    def __init__(self, group: ConsumerGroup, *, is_new: bool = False) -> None:
        self.group = group
        self._is_copy = is_new
        self.records: list[CoordinatorRecord] = []
        self.answers: list[Answer] = []
        """For those who waited in the classic group that this one replaces."""
        self._later: list[Callable[[], None]] = []

    def write(self, records: Iterable[CoordinatorRecord]) -> None:
        """Decide on `records`; what follows builds on them."""
        for record in records:
            if not self._is_copy:
                self.group, self._is_copy = self.group.copy(), True
            self.records.append(record)
            apply(self.group, record)

    def write_last(self, record: CoordinatorRecord) -> None:
        """Decide on a record that nothing else of this decision builds on: for the many decisions that have no other."""
        self.records.append(record)

    def when_decided(self, change: Callable[[], None]) -> None:
        """Make a change that no record tells, if and when the decision stands."""
        self._later.append(change)

    def finish(self) -> Effects:
        """The decision stands."""
        for change in self._later:
            change()
        return Effects(self.records, self.answers)
