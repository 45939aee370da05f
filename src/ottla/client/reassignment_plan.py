"""Plans of reassignments: which brokers hold which partitions, and in which log directories.

A proposed plan moves as few replicas as it can. In this order: replicas leave brokers that are not wanted; the replicas of a
partition are in as many racks as can be; each topic is spread evenly; all topics together are. A replica moves only where one
of these asks for it. Last, the order of the replicas is changed so that brokers are preferred leaders equally often: that
moves no data. Kafka's tool instead assigns all partitions from scratch: a broker added to three moves 8 to 12 of 12 replicas,
here 3.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ottla.client.admin.checks import number, text
from ottla.client.admin.cluster_state import NodeDescription
from ottla.client.admin.log_dirs import Replica
from ottla.errors import ArgumentError, OttlaError
from ottla.errors.texts import counted, listed
from ottla.ids import TopicPartition

ANY_LOG_DIR = "any"

Assignment = Mapping[TopicPartition, Sequence[int]]
"""The replicas of partitions, the preferred leader first."""


class PlanRefused(OttlaError):
    """A plan cannot be executed on this cluster."""


class Plan(NamedTuple):
    """The replicas of partitions, and the log directories of those for which one is named."""

    assignment: dict[TopicPartition, list[int]]
    log_dirs: dict[Replica, str]


def plan_of(content: Any) -> Plan:
    """The plan in JSON that is read already. `KeyError` and `TypeError`: it has another form."""
    plan = Plan({}, {})
    for each in content["partitions"]:
        partition = TopicPartition(text(each["topic"], "topic"), number(each["partition"], "partition"))
        replicas = [number(replica, "replicas") for replica in each["replicas"]]
        paths = [text(path, "log_dirs") for path in each.get("log_dirs", [ANY_LOG_DIR] * len(replicas))]
        if len(paths) != len(replicas):
            raise ArgumentError(f"the plan has {len(replicas)} replicas of {partition}, but {len(paths)} log_dirs")
        if partition in plan.assignment:
            raise ArgumentError(f"the plan names partition {partition} twice")
        if not replicas or len(set(replicas)) < len(replicas):
            what = "names a broker twice" if replicas else "names no broker"
            raise ArgumentError(f"the list of replicas of {partition} {what}")
        plan.assignment[partition] = replicas
        for replica, path in zip(replicas, paths, strict=True):
            if path != ANY_LOG_DIR:
                plan.log_dirs[Replica(*partition, replica)] = path
    if not plan.assignment:
        raise ArgumentError("the plan names no partition: there is nothing to move")
    return plan


def plan_json(assignment: Assignment, log_dirs: Mapping[Replica, str] | None = None) -> str:
    """A plan as one line of JSON: byte for byte what Kafka's tool writes."""
    known = log_dirs or {}
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(replicas),
            "log_dirs": [known.get(Replica(*partition, replica), ANY_LOG_DIR) for replica in replicas],
        }
        for partition, replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False)


Loads = Counter[int]
"""How many replicas, or leaders, each broker has."""


def propose(
    current: Assignment, racks: Mapping[int, str | None], replication_factor: int | None = None
) -> dict[TopicPartition, list[int]]:
    """New replicas for the partitions of `current`, on the brokers of `racks`. The racks are all None, or none is.

    There must be at least as many brokers as the largest factor.
    """
    planner = _Planner(current, racks, replication_factor)
    planner.keep()
    planner.fill()
    planner.spread_racks()
    is_moved = True
    while is_moved:  # with racks, a move of one step may make one of the other possible; no move undoes an earlier one
        is_moved = planner.spread_topics()
        is_moved |= planner.spread_all()
    planner.spread_leaders()
    return planner.assignment


def moved(current: Assignment, proposed: Assignment) -> int:
    """How many replicas are new on their brokers."""
    return sum(len(set(replicas) - set(current.get(partition, ()))) for partition, replicas in proposed.items())


class _Planner:
    def __init__(self, current: Assignment, racks: Mapping[int, str | None], replication_factor: int | None) -> None:
        self.current = current
        self.racks = racks
        self.brokers = sorted(racks)
        self.factors = {each: replication_factor or len(replicas) for each, replicas in current.items()}
        self.assignment: dict[TopicPartition, list[int]] = {}
        self.topics: dict[str, list[TopicPartition]] = defaultdict(list)
        for partition in sorted(current):
            self.topics[partition.topic].append(partition)
        self.all: Loads = Counter(dict.fromkeys(self.brokers, 0))
        self.by_topic: dict[str, Loads] = {topic: Counter(dict.fromkeys(self.brokers, 0)) for topic in self.topics}
        self.held: dict[str, dict[int, dict[TopicPartition, None]]] = {
            topic: {broker: {} for broker in self.brokers} for topic in self.topics
        }
        """The partitions of each topic on each broker; dicts keep an order."""

    # Changes

    def _add(self, partition: TopicPartition, broker: int, place: int | None = None) -> None:
        replicas = self.assignment[partition]
        replicas.insert(len(replicas) if place is None else place, broker)
        self._count(partition, broker, 1)

    def _move(self, partition: TopicPartition, source: int, target: int) -> None:
        """The new replica takes the place of the old one, so that leaders stay where they are."""
        replicas = self.assignment[partition]
        replicas[replicas.index(source)] = target
        self._count(partition, source, -1)
        self._count(partition, target, 1)

    def _count(self, partition: TopicPartition, broker: int, change: int) -> None:
        self.all[broker] += change
        self.by_topic[partition.topic][broker] += change
        if change > 0:
            self.held[partition.topic][broker][partition] = None
        else:
            self.held[partition.topic][broker].pop(partition)

    # Steps

    def keep(self) -> None:
        """Keep the replicas on wanted brokers. If there are too many, the last ones go."""
        for partition, replicas in self.current.items():
            self.assignment[partition] = []
            for broker in [each for each in replicas if each in self.racks][: self.factors[partition]]:
                self._add(partition, broker)

    def fill(self) -> None:
        """Give the partitions the replicas that they miss, each to the best broker."""
        for partitions in self.topics.values():
            for partition in partitions:
                before = [each for each in self.current[partition] if each not in self.racks]
                while len(self.assignment[partition]) < self.factors[partition]:
                    # In the place of the one that left: a partition that loses its leader gets another preferred one.
                    place = self.current[partition].index(before[0]) if before else None
                    del before[:1]
                    self._add(partition, self._best(partition), place)

    def _best(self, partition: TopicPartition) -> int:
        replicas = self.assignment[partition]
        used = self._racks_of(replicas)
        loads = self.by_topic[partition.topic]
        free = [broker for broker in self.brokers if broker not in replicas]
        return min(free, key=lambda broker: (used[self.racks[broker]], loads[broker], self.all[broker], broker))

    def _racks_of(self, replicas: Sequence[int]) -> Counter[str | None]:
        """How many of `replicas` are in each rack; nothing without racks."""
        return Counter(rack for broker in replicas if (rack := self.racks[broker]) is not None)

    def spread_racks(self) -> None:
        """Move replicas out of racks that have more of a partition than another has, by two or more."""
        for partition, replicas in self.assignment.items():
            while (used := self._racks_of(replicas)) and (found := self._rack_move(partition, used)) is not None:
                self._move(partition, *found)

    def _rack_move(self, partition: TopicPartition, used: Counter[str | None]) -> tuple[int, int] | None:
        replicas = self.assignment[partition]
        target = self._best(partition) if len(replicas) < len(self.brokers) else None
        if target is None:
            return None
        crowded = [broker for broker in replicas if used[self.racks[broker]] > used[self.racks[target]] + 1]
        return (max(crowded, key=lambda broker: (self.all[broker], broker)), target) if crowded else None

    def _fits(self, partition: TopicPartition, source: int, target: int) -> bool:
        """Whether a replica may move without a broker or a rack getting too much of its partition."""
        replicas = self.assignment[partition]
        if target in replicas:
            return False
        used = self._racks_of(replicas)
        from_rack, to_rack = self.racks[source], self.racks[target]
        return from_rack == to_rack or used[to_rack] < used[from_rack]

    def spread_topics(self) -> bool:
        """Within each topic, no broker has two more replicas than another that could take one of them. Whether one moved."""
        return sum(self._level(loads, partial(self._movable, topic)) for topic, loads in self.by_topic.items()) > 0

    def spread_all(self) -> bool:
        """Over all topics, the same; but no topic is spread worse for it."""

        def pick(source: int, target: int) -> TopicPartition | None:
            for topic, loads in self.by_topic.items():
                if loads[source] > loads[target] and (found := self._movable(topic, source, target)) is not None:
                    return found
            return None

        return self._level(self.all, pick) > 0

    def _movable(self, topic: str, source: int, target: int) -> TopicPartition | None:
        """A partition of a topic whose replica may move; rather one of a follower than of a leader."""
        fitting = (each for each in self.held[topic][source] if self._fits(each, source, target))
        first = None
        for each in fitting:
            if self.assignment[each][0] != source:
                return each
            first = first or each
        return first

    def _level(self, loads: Loads, pick: Callable[[int, int], TopicPartition | None]) -> int:
        """Move from the fullest broker to the emptiest, until no two differ by more than one where a move is possible.

        Returns the number of moves.
        """
        moves = 0
        while (found := self._next_move(loads, pick)) is not None:
            self._move(*found)
            moves += 1
        return moves

    def _next_move(
        self, loads: Loads, pick: Callable[[int, int], TopicPartition | None]
    ) -> tuple[TopicPartition, int, int] | None:
        order = sorted(self.brokers, key=lambda broker: (loads[broker], self.all[broker], broker))
        for source in reversed(order):
            for target in order:
                if loads[source] - loads[target] <= 1:
                    break
                partition = pick(source, target)
                if partition is not None:
                    return partition, source, target
        return None

    def spread_leaders(self) -> None:
        """Put other replicas first, until brokers are preferred leaders about equally often."""
        every: Loads = Counter(dict.fromkeys(self.brokers, 0))
        for replicas in self.assignment.values():
            every[replicas[0]] += 1
        topics = []
        for partitions in self.topics.values():
            loads: Loads = Counter(dict.fromkeys(self.brokers, 0))
            loads.update(self.assignment[each][0] for each in partitions)
            topics.append((partitions, loads))
        is_changed = True
        while is_changed:  # every change makes a topic more even, or all together: there is an end
            is_changed = False
            for partitions, loads in topics:
                is_changed |= self._level_leaders(partitions, loads, every)

    def _level_leaders(self, partitions: Sequence[TopicPartition], loads: Loads, every: Loads) -> bool:
        """Change the preferred leaders of one topic. Whether any has changed.

        A change must make the topic more even, or keep it so and make all topics together more even.
        """
        is_changed = False
        for partition in partitions:
            replicas = self.assignment[partition]
            leader = replicas[0]
            other = min(replicas[1:], key=lambda broker: (loads[broker], every[broker]), default=leader)
            gain = loads[leader] - loads[other]
            if gain > 1 or (gain == 1 and every[leader] - every[other] > 1):
                replicas.remove(other)
                replicas.insert(0, other)
                for counts in (loads, every):
                    counts[leader] -= 1
                    counts[other] += 1
                is_changed = True
        return is_changed


def racks_of(live: Mapping[int, NodeDescription], wanted: Sequence[int] | None, ignores_racks: bool) -> dict[int, str | None]:
    """The racks of the brokers that are wanted (None: all). Either all have one, or none is looked at."""
    brokers = sorted(live) if wanted is None else wanted
    unknown = [str(broker) for broker in brokers if broker not in live]
    if unknown:
        raise PlanRefused(
            f"broker {listed(unknown)} {'is' if len(unknown) == 1 else 'are'} not up: `ottla brokers list` shows the brokers"
        )
    racks = {broker: None if ignores_racks else live[broker].rack for broker in brokers}
    without = [str(broker) for broker, rack in racks.items() if rack is None]
    if without and len(without) < len(racks):
        raise PlanRefused(
            f"broker {listed(without)} has no rack, but others have: set broker.rack on all, or give --disable-rack-aware"
        )
    return racks


def check_count(current: Assignment, racks: Mapping[int, str | None], replication_factor: int | None) -> None:
    """There must be a broker for each replica."""
    for partition, replicas in current.items():
        count = replication_factor or len(replicas)
        if count > len(racks):
            raise PlanRefused(
                f"{partition} would have {count} replicas, but there are {counted(len(racks), 'broker')} to hold them: name "
                "more with --brokers, or give a smaller --replication-factor"
            )


def summary(current: Assignment, proposed: Assignment, brokers: Sequence[int]) -> list[str]:
    """What a plan does, in sentences."""
    total = sum(map(len, proposed.values()))
    changed = sum(list(replicas) != list(current[each]) for each, replicas in proposed.items())
    if not changed:
        return [f"nothing to move: {counted(total, 'replica')} are spread evenly over the brokers {joined(brokers)}"]
    before = Counter(broker for replicas in current.values() for broker in replicas)
    after = Counter(broker for replicas in proposed.values() for broker in replicas)
    moves = f"moves {counted(moved(current, proposed), 'replica')} of {total:,}"
    first = f"the plan changes {counted(changed, 'partition')} of {len(proposed):,} and {moves}"
    spread = ", ".join(f"{broker}: {before[broker]} → {after[broker]}" for broker in sorted({*before, *after}))
    return [first, f"replicas by broker: {spread}", "save it in a file, then: ottla reassign execute FILE"]


def joined(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))
