"""What follows from a history, computed once for all checks: which record is where, who has got it, and who must get it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from ottla.ids import TopicPartition
from ottla.sim.histories.history import History, Poll, Send, Transaction


class Finding(NamedTuple):
    """Something that must not be. `check` is the name of the check that found it."""

    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


class Facts:
    """The facts of one history."""

    def __init__(self, history: History, shrinking: Collection[TopicPartition] = ()) -> None:
        self.history = history
        self.shrinking = shrinking
        """Partitions whose records may be removed, by compaction, retention or DeleteRecords: nobody must get them."""
        self.sends = history.of(Send)
        self.polls = history.of(Poll)
        self.transactions = history.of(Transaction)
        self.send_of: dict[str, Send] = {send.value: send for send in self.sends}
        self.values: defaultdict[TopicPartition, dict[int, dict[str, str]]] = defaultdict(dict)
        """Partition → offset → value → who has found it there. One value at each offset, if all is well."""
        self.places: defaultdict[str, dict[tuple[TopicPartition, int], None]] = defaultdict(dict)
        """Value → where it was found. One place, if all is well."""
        self.first_seen_s: dict[str, float] = {}
        """Value → when a consumer first got it."""
        self.seen_end: dict[TopicPartition, int] = {}
        """Partition → one more than the highest offset that a consumer has got."""
        self._is_only_committed = all(poll.is_committed for poll in self.polls)
        self._readable: dict[tuple[TopicPartition, bool], list[int]] = {}
        self._collect()

    def _collect(self) -> None:
        readable: defaultdict[tuple[TopicPartition, bool], set[int]] = defaultdict(set)
        for send in self.sends:
            if send.offset is None:
                continue
            self._found(send.place, send.offset, send.value, send.process)
            readable[send.place, False].add(send.offset)
            if send.transaction is None or send.transaction.is_committed:
                readable[send.place, True].add(send.offset)
        for poll in self.polls:
            for place, offset, value in poll.records:
                self._found(place, offset, value, poll.process)
                self.first_seen_s[value] = min(self.first_seen_s.get(value, poll.at_s), poll.at_s)
                self.seen_end[place] = max(self.seen_end.get(place, 0), offset + 1)
                readable[place, False].add(offset)
                if poll.is_committed:
                    readable[place, True].add(offset)
        self._readable = {key: sorted(offsets) for key, offsets in readable.items()}

    def _found(self, place: TopicPartition, offset: int, value: str, process: str) -> None:
        self.values[place].setdefault(offset, {}).setdefault(value, process)
        self.places[value][place, offset] = None

    def readable(self, place: TopicPartition, is_committed: bool, start: int, end: int) -> list[int]:
        """The offsets from `start` up to `end` with a record that every consumer of that isolation level must get."""
        offsets = [] if place in self.shrinking else self._readable.get((place, is_committed), [])
        return offsets[bisect_left(offsets, start) : bisect_left(offsets, end)]

    def must_be_seen(self, send: Send) -> bool:
        """Whether consumers must get a record that is stored. Those that read everything also get what is not committed."""
        if send.place in self.shrinking:
            return False
        return send.transaction is None or send.transaction.is_committed or not self._is_only_committed

    def offset_of(self, send: Send) -> int | None:
        """Where a record is: as its producer was told, else as a consumer has found it."""
        if send.offset is not None:
            return send.offset
        return next((offset for place, offset in self.places.get(send.value, ()) if place == send.place), None)
