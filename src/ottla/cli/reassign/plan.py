"""Plans: which brokers hold which partitions, and in which log directories. Read and written as kafka-reassign-partitions does.

    {"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","/disk2/kafka"]}]}

`log_dirs` may be missing. What Kafka's tool prints around a plan may be in the file, too: then the proposed assignment is
taken, or the current one if there is no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import click

from ottla.cli.common.json_files import parse_json, read_json, read_text, typed
from ottla.client.reassignment_plan import Plan, plan_of
from ottla.errors import ArgumentError

FORM = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}'
TOPICS_FORM = '{"version": 1, "topics": [{"topic": "orders"}]}'
CURRENT, PROPOSED = "Current partition replica assignment", "Proposed partition reassignment configuration"


def read_plan(path: str) -> Plan:
    """The plan in a file (`-`: standard input). A mistake in it is wrong usage."""
    return parse_plan(read_text(path), path)


def parse_plan(text: str, where: str) -> Plan:
    """The plan in a text. `where` names it in errors."""
    try:
        return parse_json(_only_json(text), where, FORM, plan_of)
    except ArgumentError as error:
        raise click.UsageError(f"{where}: {error}") from None


def _only_json(text: str) -> str:
    """The JSON of a plan, without what Kafka's tool prints around it."""
    for heading in (PROPOSED, CURRENT):
        found = re.search(rf"^{heading}\s*^(\{{.*\}})\s*$", text, re.MULTILINE)
        if found is not None:
            return found[1]
    return text


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
