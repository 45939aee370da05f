"""What a member owns, and whose turn it is: the machine's, or the owner's to handle a `Revoke` or an `Assign`."""

from __future__ import annotations

from ottla.client_core.group.membership import NO_PARTITIONS, Assign, Event, Lost, Partitions, Revoke


class Handover:
    """The assignment of a member, changed in steps that the owner takes part in."""

    def __init__(self) -> None:
        self.assigned: Partitions = NO_PARTITIONS
        self.events: list[Event] = []
        self._pending: Revoke | Assign | None = None

    @property
    def is_owners_turn(self) -> bool:
        """Whether a `Revoke` or an `Assign` waits for the owner."""
        return self._pending is not None

    def revoke(self, partitions: Partitions) -> bool:
        """Ask the owner to give up those of `partitions` that it has; False if it has none of them."""
        partitions &= self.assigned
        if not partitions:
            return False
        self._pending = Revoke(partitions)
        self.events.append(self._pending)
        return True

    def revoked(self) -> None:
        """The owner has given them up."""
        if isinstance(self._pending, Revoke):
            self.assigned -= self._pending.partitions
            self._pending = None

    def assign(self, partitions: Partitions) -> None:
        """Hand the owner what it now has. `partitions` include all that it has already."""
        added = partitions - self.assigned
        self.assigned = partitions
        self._pending = Assign(partitions, added)
        self.events.append(self._pending)

    def assignment_taken(self) -> None:
        """The owner has taken the last assignment."""
        if isinstance(self._pending, Assign):
            self._pending = None

    def lose(self, reason: str) -> None:
        """Take everything away at once, also what the owner is busy with."""
        self._pending = None
        if self.assigned:
            self.events.append(Lost(self.assigned, reason))
            self.assigned = NO_PARTITIONS

    def take_events(self) -> list[Event]:
        """The events since the last call."""
        events, self.events = self.events, []
        return events
