"""Plans: which brokers hold which partitions, and in which log directories. Read and written as kafka-reassign-partitions does.

    {"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","/disk2/kafka"]}]}

`log_dirs` may be missing. What Kafka's tool prints around a plan may be in the file, too: then the proposed assignment is
taken, or the current one if there is no other.

A proposed plan moves as few replicas as it can. In this order: replicas leave brokers that are not wanted; the replicas of a
partition are in as many racks as can be; each topic is spread evenly; all topics together are. A replica moves only where one
of these asks for it. Last, the order of the replicas is changed so that brokers are preferred leaders equally often: that
moves no data. Kafka's tool instead assigns all partitions from scratch: a broker added to three moves 8 to 12 of 12 replicas,
here 3.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import click

from ottla.cli.common.json_files import parse_json, read_json, read_text, typed
from ottla.client.admin.log_dirs import Replica
from ottla.ids import TopicPartition

FORM = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}'
TOPICS_FORM = '{"version": 1, "topics": [{"topic": "orders"}]}'
ANY_LOG_DIR = "any"
CURRENT, PROPOSED = "Current partition replica assignment", "Proposed partition reassignment configuration"

Assignment = Mapping[TopicPartition, Sequence[int]]
"""The replicas of partitions, the preferred leader first."""


class Plan(NamedTuple):
    """The replicas of partitions, and the log directories of those for which one is named."""

    assignment: dict[TopicPartition, list[int]]
    log_dirs: dict[Replica, str]


def read_plan(path: str) -> Plan:
    """The plan in a file (`-`: standard input). A mistake in it is wrong usage."""
    return parse_plan(read_text(path), path)


def parse_plan(text: str, where: str) -> Plan:
    """The plan in a text. `where` names it in errors."""
    plan, twice = parse_json(_only_json(text), where, FORM, _parse)
    if twice is not None:
        raise click.UsageError(f"{where} names partition {twice} twice")
    if not plan.assignment:
        raise click.UsageError(f"{where} names no partition: there is nothing to move")
    for partition, replicas in plan.assignment.items():
        if not replicas or len(set(replicas)) < len(replicas):
            what = "names a broker twice" if replicas else "names no broker"
            raise click.UsageError(f"{where}: the list of replicas of {partition} {what}")
    return plan


def _only_json(text: str) -> str:
    """The JSON of a plan, without what Kafka's tool prints around it."""
    for heading in (PROPOSED, CURRENT):
        found = re.search(rf"^{heading}\s*^(\{{.*\}})\s*$", text, re.MULTILINE)
        if found is not None:
            return found[1]
    return text


def _parse(content: Any) -> tuple[Plan, TopicPartition | None]:
    """The plan, and a partition that it names twice."""
    plan, twice = Plan({}, {}), None
    for each in content["partitions"]:
        partition = TopicPartition(typed(each["topic"], str), typed(each["partition"], int))
        replicas = [typed(replica, int) for replica in typed(each["replicas"], list)]
        paths = [typed(path, str) for path in typed(each.get("log_dirs", [ANY_LOG_DIR] * len(replicas)), list)]
        if len(paths) != len(replicas):
            raise click.UsageError(f"the plan has {len(replicas)} replicas of {partition}, but {len(paths)} log_dirs")
        if partition in plan.assignment:
            twice = partition
        plan.assignment[partition] = replicas
        for replica, path in zip(replicas, paths, strict=True):
            if path != ANY_LOG_DIR:
                plan.log_dirs[Replica(*partition, replica)] = path
    return plan, twice


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


def read_topics(path: str) -> list[str]:
    """The topics in a file of the form that Kafka's --topics-to-move-json-file has."""
    topics = read_json(path, TOPICS_FORM, lambda content: [typed(each["topic"], str) for each in content["topics"]])
    return unique(topics, f"{path} names topic")


def parse_brokers(text: str) -> list[int]:
    """`1,2,3`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) < 1 << 31 for part in parts):
        raise click.UsageError(f"--brokers takes ids of brokers such as 1,2,3, not {text!r}")
    return unique([int(part) for part in parts], "--brokers names broker")


def unique(values: Iterable[Any], naming: str) -> list[Any]:
    """`values`, each of which may be there once; `naming` begins the error."""
    found = list(values)
    for value in found:
        if found.count(value) > 1:
            raise click.UsageError(f"{naming} {value} twice")
    return found


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
