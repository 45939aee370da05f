"""What clients did and saw, in order: the input of all checks. Owns the events and their JSON form; checks nothing.

    history = History(now_s)
    send = history.send("producer-1", place, "value-7")    # before the record is handed to the producer
    send.stored(offset)                                     # its delivery: or `failed`, or nothing, if that stays unknown
    history.polled("consumer-1", [Seen(place, 12, "value-7")])

Clients may run in threads: an event is appended with one call, and later changed by its own client only. Values are unique
within a history. Times are seconds of one clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ottla.ids import TopicPartition


class Seen(NamedTuple):
    """One record that a consumer got."""

    place: TopicPartition
    offset: int
    value: str


@dataclass(eq=False, slots=True)
class Transaction:
    """A transaction of a producer. Which way it was to end is in `wanted`, as soon as that was asked for."""

    name: str
    process: str
    began_s: float
    wanted: str | None = None
    """"commit" or "abort"; None while neither was asked for."""
    asked_s: float | None = None
    ended_s: float | None = None
    """When the end was answered; None if it was not."""
    now_s: Callable[[], float] = field(default=float, repr=False)

    def asks(self, wanted: str) -> None:
        """The client is about to ask for the end."""
        self.wanted, self.asked_s = wanted, self.now_s()

    def ended(self) -> None:
        """The end was answered with success."""
        self.ended_s = self.now_s()

    @property
    def is_committed(self) -> bool:
        return self.wanted == "commit" and self.ended_s is not None


@dataclass(eq=False, slots=True)
class Send:
    """A record that a producer sent. It is stored (`is_stored`), certainly not (`is_failed`), or nobody knows."""

    process: str
    place: TopicPartition
    value: str
    sent_s: float
    transaction: Transaction | None = None
    is_repeatable: bool = False
    """Whether it may be stored twice: the producer is not idempotent."""
    offset: int | None = None
    answered_s: float | None = None
    is_failed: bool = False
    now_s: Callable[[], float] = field(default=float, repr=False)

    def stored(self, offset: int | None) -> None:
        """The producer reports the record as stored; None: it does not know where, because its answer was lost."""
        self.offset, self.answered_s = offset, self.now_s()

    @property
    def is_stored(self) -> bool:
        return self.answered_s is not None and not self.is_failed

    def failed(self) -> None:
        """The record was certainly not stored: it was never sent, or refused without a doubt."""
        self.is_failed, self.answered_s = True, self.now_s()


@dataclass(eq=False, slots=True)
class Poll:
    """Records that one poll of a consumer returned, in its order."""

    process: str
    records: list[Seen]
    at_s: float
    group: str | None = None
    is_committed: bool = False
    """Whether the consumer is read_committed."""
    transaction: Transaction | None = None
    """The transaction that the records are dealt with in."""


@dataclass(eq=False, slots=True)
class Assigned:
    """A consumer begins to read these partitions: its `group` assigned them, or it sought a place (None). Others go on."""

    process: str
    places: tuple[TopicPartition, ...]
    at_s: float
    group: str | None = None


@dataclass(eq=False, slots=True)
class OffsetCommit:
    """Offsets that a member of a group committed."""

    group: str
    offsets: dict[TopicPartition, int]
    sent_s: float
    answered_s: float | None = None
    now_s: Callable[[], float] = field(default=float, repr=False)

    def acknowledged(self) -> None:
        self.answered_s = self.now_s()


@dataclass(eq=False, slots=True)
class OffsetsFound:
    """The committed offsets of a group, as an answer that was asked for at `asked_s` has them; -1 means none."""

    group: str
    offsets: dict[TopicPartition, int]
    asked_s: float
    at_s: float


Event = Send | Poll | Assigned | Transaction | OffsetCommit | OffsetsFound
E = TypeVar("E", Send, Poll, Assigned, Transaction, OffsetCommit, OffsetsFound)


class History:
    """The events of all clients. `now_s` is their clock."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self.events: list[Event] = []

    # Recording

    def transaction(self, process: str, name: str) -> Transaction:
        """A producer has begun a transaction; `name` is unique within the history."""
        return self._add(Transaction(name, process, self.now_s(), now_s=self.now_s))

    def send(
        self,
        process: str,
        place: TopicPartition,
        value: str,
        transaction: Transaction | None = None,
        *,
        is_repeatable: bool = False,
    ) -> Send:
        """A producer is about to send a record. Sends of one process are recorded in the order of its calls."""
        return self._add(Send(process, place, value, self.now_s(), transaction, is_repeatable, now_s=self.now_s))

    def polled(
        self,
        process: str,
        records: Iterable[Seen],
        *,
        group: str | None = None,
        is_committed: bool = False,
        transaction: Transaction | None = None,
    ) -> Poll:
        """A poll of a consumer returned these records."""
        return self._add(Poll(process, list(records), self.now_s(), group, is_committed, transaction))

    def assigned(self, process: str, places: Iterable[TopicPartition], group: str | None = None) -> Assigned:
        """A consumer begins to read these partitions, at the committed offsets or where its reset policy says."""
        return self._add(Assigned(process, tuple(places), self.now_s(), group))

    def commits(self, group: str, offsets: Mapping[TopicPartition, int]) -> OffsetCommit:
        """A member is about to commit offsets of its group."""
        return self._add(OffsetCommit(group, dict(offsets), self.now_s(), now_s=self.now_s))

    def offsets_found(self, group: str, offsets: Mapping[TopicPartition, int], asked_s: float) -> OffsetsFound:
        """Committed offsets of a group were answered."""
        return self._add(OffsetsFound(group, dict(offsets), asked_s, self.now_s()))

    def _add(self, event: E) -> E:
        self.events.append(event)
        return event

    # Reading

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind, in their order."""
        return [event for event in self.events if isinstance(event, kind)]

    def to_lines(self) -> list[str]:
        """One JSON object for each event."""
        return [_line(event) for event in self.events]

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> History:
        """The history that `to_lines` has written."""
        history = cls(float)
        transactions: dict[str, Transaction] = {}
        for line in lines:
            kind, fields = json.loads(line)
            event = _event(kind, fields, transactions)
            if isinstance(event, Transaction):
                transactions[event.name] = event
            history.events.append(event)
        return history


_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (Send, Poll, Assigned, Transaction, OffsetCommit, OffsetsFound)
}


def _line(event: Event) -> str:
    fields: dict[str, Any] = {name: getattr(event, name) for name in event.__slots__ if name != "now_s"}
    if fields.get("transaction") is not None:
        fields["transaction"] = fields["transaction"].name
    if "offsets" in fields:
        fields["offsets"] = [[*place, offset] for place, offset in fields["offsets"].items()]
    return json.dumps([type(event).__name__, fields])


def _event(kind: str, fields: dict[str, Any], transactions: dict[str, Transaction]) -> Event:
    if fields.get("transaction") is not None:
        fields["transaction"] = transactions[fields["transaction"]]
    if "place" in fields:
        fields["place"] = TopicPartition(*fields["place"])
    if "places" in fields:
        fields["places"] = tuple(TopicPartition(*place) for place in fields["places"])
    if "records" in fields:
        fields["records"] = [Seen(TopicPartition(*place), offset, value) for place, offset, value in fields["records"]]
    if "offsets" in fields:
        fields["offsets"] = {TopicPartition(topic, partition): offset for topic, partition, offset in fields["offsets"]}
    return _KINDS[kind](**fields)
