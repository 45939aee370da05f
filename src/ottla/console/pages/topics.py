"""Topics: the list, one topic with its partitions and settings, and changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ottla.client.admin.configs import ConfigResource, ConfigSource, alter_configs, describe_configs
from ottla.client.admin.offsets import delete_records
from ottla.client.admin.topic_descriptions import TopicDescription
from ottla.client.admin.topics import NewPartitions, NewTopic, create_partitions, create_topics, delete_topics
from ottla.console.app import Data, Refused, Visit, change, page
from ottla.console.clusters import ClusterView, Ends, NotAnswering
from ottla.console.pages.groups import lag_by_topic, readers_of
from ottla.console.pages.tables import tabulate
from ottla.ids import TopicPartition, uuid_text


async def _ends(view: ClusterView) -> Ends | None:
    """The offsets, if they are there by now: a page shows dashes without."""
    try:
        return await view.ends.get(wait_s=0.3)
    except NotAnswering:
        return None


def _records(topic: TopicDescription, ends: Ends | None) -> int | None:
    """How many offsets a topic spans."""
    if ends is None:
        return None
    keys = [TopicPartition(topic.name, each.partition) for each in topic.partitions]
    return sum(ends.ends[key] - ends.starts.get(key, 0) for key in keys if key in ends.ends)


def _trouble(topic: TopicDescription) -> str:
    if any(each.leader is None for each in topic.partitions):
        return "offline"
    if any(len(each.isr) < len(each.replicas) for each in topic.partitions):
        return "under-replicated"
    return ""


@page("/topics", "topics.html")
async def topics(visit: Visit) -> Data:
    """All topics, with search, order and pages."""
    view = visit.view
    state = await view.state.get()
    shows_internal = visit.query.get("internal") == "1"
    shown = [each for each in state.topics.values() if shows_internal or not each.is_internal]
    ends = await _ends(view)
    sizes = await _sizes(view)
    lags = await lag_by_topic(view)
    table = tabulate(
        visit,
        shown,
        lambda each: each.name,
        {
            "name": lambda each: each.name,
            "partitions": lambda each: len(each.partitions),
            "records": lambda each: _records(each, ends),
            "size": lambda each: sizes.get(each.name),
            "rate": lambda each: view.rate(each.name),
            "lag": lambda each: lags.get(each.name),
        },
        "name",
    )
    return {
        "title": "Topics",
        "table": table._replace(rows=[])._asdict(),
        "internal": shows_internal,
        "rows": [
            {
                "name": each.name,
                "partitions": len(each.partitions),
                "replicas": max((len(one.replicas) for one in each.partitions), default=0),
                "records": _records(each, ends),
                "size": sizes.get(each.name),
                "rate": view.rate(each.name),
                "lag": lags.get(each.name),
                "history": view.history(each.name)[-30:],
                "trouble": _trouble(each),
                "is_internal": each.is_internal,
            }
            for each in table.rows
        ],
    }


async def _sizes(view: ClusterView) -> Mapping[str, int]:
    """Bytes on disk by topic, if they are known by now."""
    try:
        await view.log_dirs.get(wait_s=0.3)
    except NotAnswering:
        return {}
    return view.sizes


async def described(visit: Visit) -> TopicDescription:
    """The topic of the path."""
    name = visit.segments["name"]
    state = await visit.view.state.get()
    if name not in state.topics:
        visit.view.state.forget()
        state = await visit.view.state.get()
    if name not in state.topics:
        raise Refused(404, f"topic {name} does not exist")
    return state.topics[name]


@page("/topics/{name}", "topic.html")
async def topic(visit: Visit) -> Data:
    """One topic."""
    view = visit.view
    found = await described(visit)
    resource = ConfigResource("topic", found.name)
    async with asyncio.timeout(2):
        results = await describe_configs(view.cluster, [resource], include_documentation=True)
    entries = next(iter(results.values()))
    ends, sizes, disks = await _ends(view), await _sizes(view), await _disks(view, found.name)
    return {
        "title": found.name,
        "name": found.name,
        "id": "" if found.id is None else uuid_text(found.id),
        "is_internal": found.is_internal,
        "records": _records(found, ends),
        "size": sizes.get(found.name),
        "rate": view.rate(found.name),
        "history": view.history(found.name),
        "trouble_kind": _trouble(found),
        "partitions": [_partition(found.name, each, ends, disks) for each in found.partitions],
        "readers": await readers_of(view, found.name),
        "settings": sorted(
            (
                {
                    "name": name,
                    "value": "(hidden)" if entry.is_sensitive else entry.value,
                    "is_default": entry.source != ConfigSource.DYNAMIC_TOPIC_CONFIG,
                    "source": ConfigSource(entry.source).name.lower().replace("_", " "),
                    "documentation": entry.documentation or "",
                    "is_read_only": entry.is_read_only,
                }
                for name, entry in entries.items()
            ),
            key=lambda each: (each["is_default"], each["name"]),
        ),
    }


async def _disks(view: ClusterView, topic: str) -> dict[tuple[int, int], Data]:
    """Where the replicas of a topic lie, by partition and broker."""
    try:
        directories = await view.log_dirs.get(wait_s=0.3)
    except NotAnswering:
        return {}
    return {
        (key.partition, broker): {"path": directory.path, "size": replica.size_bytes, "is_future": replica.is_future}
        for broker, found in directories.items()
        for directory in found
        for key, replica in directory.replicas.items()
        if key.topic == topic
    }


def _partition(name: str, each: Any, ends: Ends | None, disks: Mapping[tuple[int, int], Data]) -> Data:
    key = TopicPartition(name, each.partition)
    start = None if ends is None else ends.starts.get(key)
    end = None if ends is None else ends.ends.get(key)
    return {
        "partition": each.partition,
        "leader": each.leader,
        "epoch": each.leader_epoch,
        "replicas": [
            {
                "id": one,
                "in_sync": one in each.isr,
                "offline": one in each.offline,
                "disk": disks.get((each.partition, one)),
            }
            for one in each.replicas
        ],
        "size": max((disk["size"] for (partition, _), disk in disks.items() if partition == each.partition), default=None),
        "start": start,
        "end": end,
        "records": None if start is None or end is None else end - start,
        "trouble": "offline" if each.leader is None else "under-replicated" if len(each.isr) < len(each.replicas) else "",
    }


@change("/topics/create")
async def create(visit: Visit) -> tuple[str, str]:
    """A new topic."""
    form = visit.form
    name = form.get("name", "").strip()
    settings = dict(_settings(form.get("settings", "")))
    partitions, replicas = _number(form, "partitions"), _number(form, "replication_factor")
    results = await create_topics(visit.view.cluster, [NewTopic(name, partitions, replicas, configs=settings or None)])
    results[name]
    return f"/topics/{name}", f"Topic {name} was created."


def _number(form: Mapping[str, str], name: str) -> int:
    """A field that holds a number; -1, the default of the cluster, without one."""
    given = form.get(name, "").strip()
    if given and not (given.isdigit() and len(given) < 10):
        raise Refused(400, f"nothing was changed: {name.replace('_', ' ')} {given!r} is no whole number")
    return int(given) if given else -1


def _settings(text: str) -> list[tuple[str, str]]:
    """Lines of name=value."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals:
            raise Refused(400, f"the setting {line!r} has no value: write name=value, one a line")
        found.append((name.strip(), value.strip()))
    return found


@change("/topics/{name}/delete")
async def delete(visit: Visit) -> tuple[str, str]:
    """Delete a topic; its name must be given as well."""
    name = visit.segments["name"]
    _confirmed(visit, name)
    (await delete_topics(visit.view.cluster, [name]))[name]
    return "/topics", f"Topic {name} was deleted."


@change("/topics/{name}/purge")
async def purge(visit: Visit) -> tuple[str, str]:
    """Delete all records of a topic."""
    found = await described(visit)
    _confirmed(visit, found.name)
    results = await delete_records(visit.view.cluster, {(found.name, each.partition): -1 for each in found.partitions})
    results.raise_first()
    return f"/topics/{found.name}", f"All records of topic {found.name} were deleted."


@change("/topics/{name}/partitions")
async def add_partitions(visit: Visit) -> tuple[str, str]:
    """More partitions."""
    name, total = visit.segments["name"], max(0, _number(visit.form, "total"))
    (await create_partitions(visit.view.cluster, {name: NewPartitions(total)}))[name]
    return f"/topics/{name}", f"Topic {name} has {total} partitions."


@change("/topics/{name}/settings")
async def set_setting(visit: Visit) -> tuple[str, str]:
    """Set one setting, or take it back to its default."""
    name, setting = visit.segments["name"], visit.form.get("setting", "")
    value = None if visit.form.get("reset") else visit.form.get("value", "")
    resource = ConfigResource("topic", name)
    results = await alter_configs(visit.view.cluster, {resource: {setting: value}})
    results.raise_first()
    done = f"{setting} of topic {name} is {'its default again' if value is None else value}."
    return f"/topics/{name}", done


@change("/topics/{name}/clone")
async def clone(visit: Visit) -> tuple[str, str]:
    """A new, empty topic with the same partitions and settings."""
    found, target = await described(visit), visit.form.get("target", "").strip()
    entries = next(iter((await describe_configs(visit.view.cluster, [ConfigResource("topic", found.name)])).values()))
    own = {name: each.value for name, each in entries.items() if each.source == ConfigSource.DYNAMIC_TOPIC_CONFIG}
    replicas = max(len(each.replicas) for each in found.partitions)
    results = await create_topics(visit.view.cluster, [NewTopic(target, len(found.partitions), replicas, configs=own or None)])
    results[target]
    return f"/topics/{target}", f"Topic {target} was created with the settings of {found.name}. Records were not copied."


def _confirmed(visit: Visit, name: str) -> None:
    if visit.form.get("confirm", "").strip() != name:
        raise Refused(400, f"nothing was changed: type the topic's name, {name}, to confirm")
