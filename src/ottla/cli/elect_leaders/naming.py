"""Which partitions are meant: the ways to name them, and what the cluster says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ottla.cli.common.json_files import read_json, typed
from ottla.cli.topics.choosing import choose
from ottla.client.admin.topic_descriptions import PartitionDescription, describe_topics, list_topics
from ottla.client.cluster import Cluster
from ottla.ids import TopicPartition

FORM = '{"partitions": [{"topic": "orders", "partition": 0}]}'

Named = Sequence[tuple[str, int | None]]
"""Topics and partitions that the user has named; None for all partitions of the topic."""


def named_partitions(
    places: Sequence[str], topic: str | None, numbers: Sequence[int], is_all: bool, path: str | None
) -> Named | None:
    """What the user has named; None for --all."""
    if sum((bool(places), topic is not None, is_all, path is not None)) != 1:
        raise click.UsageError(
            "say which partitions, one way: ottla elect-leaders orders:0 (or orders, --all, --path-to-json-file)"
        )
    if numbers and topic is None:
        raise click.UsageError("--partition needs --topic; or write orders:0")
    if is_all:
        return None
    if path is not None:
        return _unique(read_json(path, FORM, _parse_file))
    if topic is not None:
        return _unique([(topic, number) for number in numbers] or [(topic, None)])
    return _unique([_parse_place(place) for place in places])


def _parse_file(content: Any) -> list[tuple[str, int | None]]:
    return [(typed(each["topic"], str), typed(each["partition"], int)) for each in content["partitions"]]


def _parse_place(text: str) -> tuple[str, int | None]:
    topic, colon, number = text.partition(":")
    if not topic or (colon and not number.isdigit()):
        raise click.UsageError(f"{text!r} is neither TOPIC nor TOPIC:PARTITION: write for example orders, or orders:0")
    return topic, int(number) if colon else None


def _unique(named: list[tuple[str, int | None]]) -> list[tuple[str, int | None]]:
    for each in named:
        if named.count(each) > 1:
            raise click.UsageError(f"{each[0]}{'' if each[1] is None else f'-{each[1]}'} is named twice")
    if not named:
        raise click.UsageError("no partition is named: there is nothing to elect")
    return named


async def describe_named(cluster: Cluster, named: Named | None) -> dict[TopicPartition, PartitionDescription | None]:
    """The partitions that are meant; None for one that does not exist."""
    known = await list_topics(cluster, include_internal=True)
    names = list(known) if named is None else choose(known, [topic for topic, _ in named], None)
    topics = (await describe_topics(cluster, names)).raise_first()
    found = {
        TopicPartition(name, each.partition): each
        for name, topic in zip(names, topics.values(), strict=True)
        for each in topic.partitions
    }
    if named is None:
        return dict(found)
    meant: dict[TopicPartition, PartitionDescription | None] = {}
    for topic_name, number in named:
        if number is None:
            meant |= {each: found[each] for each in found if each.topic == topic_name}
        else:
            meant[TopicPartition(topic_name, number)] = found.get(TopicPartition(topic_name, number))
    return meant
