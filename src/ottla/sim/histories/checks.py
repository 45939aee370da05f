"""Checks of a history: pure functions of its `Facts` that return findings. `check` runs all of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.ids import TopicPartition
from ottla.sim.histories.history import Assigned, History, OffsetCommit, OffsetsFound, Poll, Seen, Send, Transaction

KINDS: Final = ("wr", "ww", "rw")

Edges = dict[str, dict[str, str]]
"""Transaction → a transaction that depends on it → the kind. If there are several, the first of `KINDS`."""


class Cycle(NamedTuple):
    """Transactions, each of which depends on the one before it, and the first on the last."""

    transactions: tuple[str, ...]
    kinds: tuple[str, ...]
    """The kind of the step from each transaction to the next."""

    def __str__(self) -> str:
        steps = [f"{name} -{kind}->" for name, kind in zip(self.transactions, self.kinds, strict=True)]
        return f"{' '.join(steps)} {self.transactions[0]}"


def read_cycles(facts: Facts) -> list[Finding]:
    """The cycles that must not be: of wr alone."""
    return [Finding("wr cycle", str(cycle)) for cycle in cycles(facts, ("wr",))]


def cycles(facts: Facts, kinds: Iterable[str] = KINDS) -> list[Cycle]:
    """Cycles of dependencies between transactions.

        ww    both wrote to a partition, one after the other
        wr    one polled what the other wrote
        rw    one polled up to a record, and the other wrote the next one

    Kafka isolates no writes and makes a transaction visible one partition at a time, so cycles with ww or rw are allowed
    (Jepsen found them in every implementation). A cycle of wr alone is not: each of these transactions would have to be
    committed before another one.

    One shortest cycle for each set of transactions that depend on each other by these kinds.
    """
    edges = _edges(facts, set(kinds))
    return [_cycle(edges, group) for group in _components(edges) if len(group) > 1]


def _edges(facts: Facts, kinds: set[str]) -> Edges:
    found: Edges = defaultdict(dict)

    def add(before: str | None, after: str | None, kind: str) -> None:
        if before is None or after is None or before == after or kind not in kinds:
            return
        known = found[before].get(after)
        if known is None or KINDS.index(kind) < KINDS.index(known):
            found[before][after] = kind
        found.setdefault(after, {})

    writers = {send.value: send.transaction.name for send in facts.sends if send.transaction is not None}
    order: dict[TopicPartition, list[tuple[int, str | None]]] = {}
    for place, offsets in facts.values.items():
        order[place] = [(offset, writers.get(next(iter(values)))) for offset, values in sorted(offsets.items())]
        for (_, before), (_, after) in pairwise(order[place]):
            add(before, after, "ww")
    following = {(place, here): after for place, writes in order.items() for (here, _), (_, after) in pairwise(writes)}
    for poll in facts.polls:
        if poll.transaction is None:
            continue
        reader = poll.transaction.name
        for place, offset, value in poll.records:
            add(writers.get(value), reader, "wr")
            add(reader, following.get((place, offset)), "rw")
    return found


def _components(edges: Mapping[str, Mapping[str, str]]) -> list[list[str]]:
    """The strongly connected components (Tarjan, without recursion: histories have thousands of transactions)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in edges:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        path = [(root, iter(edges[root]))]
        while path:
            node, rest = path[-1]
            child = next(rest, None)
            if child is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    found.append(stack[at:])
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
            elif child not in index:
                index[child] = low[child] = len(index)
                stack.append(child)
                on_stack.add(child)
                path.append((child, iter(edges[child])))
            elif child in on_stack:
                low[node] = min(low[node], index[child])
    return found


def _cycle(edges: Mapping[str, Mapping[str, str]], group: list[str]) -> Cycle:
    """A shortest cycle through the first transaction of a component."""
    inside, start = set(group), group[0]
    came_from: dict[str, str] = {}
    queue = [start]
    for node in queue:
        for child in edges[node]:
            if child == start:
                names = [node]
                while names[-1] != start:
                    names.append(came_from[names[-1]])
                names.reverse()
                steps = zip(names, [*names[1:], start], strict=True)
                return Cycle(tuple(names), tuple(edges[one][other] for one, other in steps))
            if child in inside and child not in came_from:
                came_from[child] = node
                queue.append(child)
    raise AssertionError(f"{start} is in no cycle")  # a component of several has one through each of them


def inconsistent_offsets(facts: Facts) -> list[Finding]:
    """An offset holds one record, for all clients and at all times."""
    return [
        Finding("inconsistent offset", f"{place} offset {offset} holds {_by_whom(values)}")
        for place, offsets in facts.values.items()
        for offset, values in offsets.items()
        if len(values) > 1
    ]


def duplicates(facts: Facts) -> list[Finding]:
    """A record of an idempotent producer is stored once."""
    found = []
    for value, places in facts.places.items():
        send = facts.send_of.get(value)
        if len(places) > 1 and (send is None or not send.is_repeatable):
            listed = ", ".join(f"{place} offset {offset}" for place, offset in places)
            found.append(Finding("duplicate", f"{value!r} is at {listed}"))
    return found


def invented_records(facts: Facts) -> list[Finding]:
    """Consumers get only what was sent, where it was sent to. Partitions to which the history sends nothing are left out."""
    known = {send.place for send in facts.sends}
    found = []
    for value, places in facts.places.items():
        send = facts.send_of.get(value)
        for place, offset in places:
            if place in known and (send is None or send.place != place):
                found.append(Finding("invented record", f"{place} offset {offset} holds {value!r}, which was not sent there"))
    return found


def lost_writes(facts: Facts) -> list[Finding]:
    """A stored record is got by consumers: none may go past it.

    Consumers begin at the start of each partition: a record below one that was got, and that nobody has got, is lost.
    """
    found = []
    for send in facts.sends:
        if send.offset is None or send.value in facts.first_seen_s or not facts.must_be_seen(send):
            continue
        if send.offset < facts.seen_end.get(send.place, 0):
            found.append(
                Finding(
                    "lost write",
                    f"{send.process} was told that {send.value!r} is at {send.place} offset {send.offset}, and no consumer got "
                    f"it, though they have read up to {facts.seen_end[send.place] - 1}",
                )
            )
    return found


def unseen_records(facts: Facts) -> list[Finding]:
    """At the end, when consumers have had the time to read everything, no stored record is unseen."""
    return [
        Finding("unseen record", f"{send.value!r} was stored at {send.place} offset {send.offset}, and no consumer got it")
        for send in facts.sends
        if send.is_stored
        and send.value not in facts.first_seen_s
        and (send.offset is None or send.offset >= facts.seen_end.get(send.place, 0))
        and facts.must_be_seen(send)
    ]


def out_of_order_sends(facts: Facts) -> list[Finding]:
    """Records that one producer sends to one partition are stored in the order of its calls."""
    found = []
    last: dict[tuple[str, TopicPartition], tuple[int, str]] = {}
    for send in facts.sends:
        offset = facts.offset_of(send)
        if offset is None or send.is_repeatable:
            continue
        before = last.get((send.process, send.place))
        if before is not None and offset <= before[0]:
            found.append(
                Finding(
                    "sends out of order",
                    f"{send.process} sent {send.value!r} to {send.place} after {before[1]!r}, and it is at {offset}, before "
                    f"{before[0]}",
                )
            )
        else:
            last[send.process, send.place] = (offset, send.value)
    return found


def lags_s(facts: Facts) -> list[float]:
    """How long each stored record was unseen after its producer knew, shortest first; records that nobody got are left out."""
    return sorted(
        max(facts.first_seen_s[send.value] - send.answered_s, 0.0)
        for send in facts.sends
        if send.offset is not None and send.answered_s is not None and send.value in facts.first_seen_s
    )


def _by_whom(values: dict[str, str]) -> str:
    return " and ".join(f"{value!r} (for {process})" for value, process in values.items())


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
    """Where each consumer is.

    Between two assignments a consumer goes forward, past no record. After one it begins at an offset of its group: not below
    the last one that was committed, and past no record that no member of the group got. Groups begin at the start of each
    partition.
    """

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


def aborted_reads(facts: Facts) -> list[Finding]:
    """No reader of committed records gets a record of an aborted transaction, and nobody a record that was refused."""
    found = []
    for poll, record, send in _reads(facts):
        if send.is_failed:
            found.append(_finding("aborted read", poll, record, "whose send was refused"))
        elif poll.is_committed and send.transaction is not None and send.transaction.wanted == "abort":
            found.append(_finding("aborted read", poll, record, f"of transaction {send.transaction.name}, which was aborted"))
    return found


def precommitted_reads(facts: Facts) -> list[Finding]:
    """No reader of committed records gets a record before the commit of its transaction was asked for."""
    found = []
    for poll, record, send in _reads(facts):
        transaction = send.transaction
        if not poll.is_committed or transaction is None or transaction.wanted == "abort":
            continue
        if transaction.asked_s is None or transaction.asked_s > poll.at_s:
            when = "was never asked for" if transaction.asked_s is None else "was asked for later"
            found.append(_finding("precommitted read", poll, record, f"of transaction {transaction.name}, whose commit {when}"))
    return found


def torn_transactions(facts: Facts) -> list[Finding]:
    """At the end, when readers of committed records have had the time to read everything, they have all of a transaction."""
    got: set[str] = {record.value for poll in facts.polls if poll.is_committed for record in poll.records}
    if not any(poll.is_committed for poll in facts.polls):
        return []
    there: defaultdict[str, list[str]] = defaultdict(list)
    missing: defaultdict[str, list[str]] = defaultdict(list)
    ended: dict[str, Transaction] = {}
    for send in facts.sends:
        if send.transaction is None or send.offset is None or send.place in facts.shrinking:
            continue
        (there if send.value in got else missing)[send.transaction.name].append(send.value)
        ended[send.transaction.name] = send.transaction
    found = []
    for name, values in missing.items():
        if there[name]:
            text = f"of transaction {name} {len(there[name])} records are there, and {len(values)} are not: {values[0]!r}"
            found.append(Finding("torn transaction", text))
        elif ended[name].is_committed:
            text = f"transaction {name} was committed, and none of its {len(values)} records is there"
            found.append(Finding("torn transaction", text))
    return found


def _reads(facts: Facts) -> list[tuple[Poll, Seen, Send]]:
    return [
        (poll, record, facts.send_of[record.value])
        for poll in facts.polls
        for record in poll.records
        if record.value in facts.send_of
    ]


def _finding(check: str, poll: Poll, record: Seen, why: str) -> Finding:
    return Finding(check, f"{poll.process} got {record.value!r} at {record.place} offset {record.offset}, {why}")


ALWAYS: Final = (
    inconsistent_offsets,
    duplicates,
    invented_records,
    lost_writes,
    out_of_order_sends,
    polls,
    committed_offsets,
    aborted_reads,
    precommitted_reads,
    read_cycles,
)
AT_THE_END: Final = (unseen_records, torn_transactions)
"""Only when consumers have had the time to read everything."""
_SHOWN_MAX: Final = 20


@dataclass
class Report:
    """What the checks found. Nothing, if all is well; then `sends`, `stored` and `seen` say how much was checked."""

    findings: list[Finding]
    sends: int = 0
    stored: int = 0
    seen: int = 0
    transactions: int = 0
    lag_s_max: float = 0.0
    """The longest time that a stored record was not seen by any consumer."""
    allowed_cycles: list[Cycle] = field(default_factory=list)
    """Cycles between transactions that Kafka allows."""

    @property
    def lines(self) -> list[str]:
        """The report in words."""
        counts = f"{self.sends} records sent, {self.stored} stored, {self.seen} seen, {self.transactions} transactions"
        lag = f"unseen for {self.lag_s_max:.2f} s at most"
        lines = [f"{counts}; {lag}; {len(self.allowed_cycles)} cycles that Kafka allows"]
        lines += map(str, self.findings[:_SHOWN_MAX])
        if len(self.findings) > _SHOWN_MAX:
            lines.append(f"and {len(self.findings) - _SHOWN_MAX} more findings")
        return lines

    def raise_findings(self) -> None:
        """Raise an AssertionError if anything was found."""
        if self.findings:
            raise AssertionError("\n".join(self.lines))


def check(history: History, *, is_read_whole: bool, shrinking: Collection[TopicPartition] = ()) -> Report:
    """Run the checks. `is_read_whole`: consumers had the time to read everything that was stored.

    `shrinking`: partitions whose records may be removed.
    """
    facts = Facts(history, shrinking)
    lags = lags_s(facts)
    return Report(
        [found for each in (*ALWAYS, *(AT_THE_END if is_read_whole else ())) for found in each(facts)],
        len(facts.sends),
        sum(send.offset is not None for send in facts.sends),
        len(facts.first_seen_s),
        len(facts.transactions),
        lags[-1] if lags else 0.0,
        cycles(facts) if facts.transactions else [],
    )


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
