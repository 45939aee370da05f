"""Cycles of dependencies between transactions.

    ww    both wrote to a partition, one after the other
    wr    one polled what the other wrote
    rw    one polled up to a record, and the other wrote the next one

Kafka isolates no writes and makes a transaction visible one partition at a time, so cycles with ww or rw are allowed
(Jepsen found them in every implementation). A cycle of wr alone is not: each of these transactions would have to be committed
before another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.ids import TopicPartition
from ottla.sim.histories.facts import Facts, Finding

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
    """One shortest cycle for each set of transactions that depend on each other by these kinds."""
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
