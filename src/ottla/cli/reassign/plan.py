"""Plans: which brokers hold which partitions, and in which log directories. Read and written as kafka-reassign-partitions does.

    {"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","/disk2/kafka"]}]}

`log_dirs` may be missing. What Kafka's tool prints around a plan may be in the file, too: then the proposed assignment is
taken, or the current one if there is no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
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
