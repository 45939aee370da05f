"""Nodes: brokers with their share and disks, their settings, the metadata quorum, log directories."""

from __future__ import annotations

import time

from ottla.client.admin.configs import (
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    alter_configs,
    describe_configs,
)
from ottla.client.admin.log_dirs import LogDirDescription
from ottla.client.health import quorum_problems
from ottla.console.app import Data, Refused, Visit, change, page
from ottla.console.clusters import NotAnswering, soon
from ottla.console.pages.fields import needed
from ottla.ids import ZERO_UUID, uuid_text

ALL = "all"
"""In place of a node's id: the settings that all brokers have unless they have their own."""
CHANGE_S = 30.0
LITTLE_DISK = 0.15


async def _directories(visit: Visit) -> dict[int, list[LogDirDescription]]:
    try:
        return await visit.view.log_dirs.get(wait_s=1.0)
    except NotAnswering:
        return {}


@page("/nodes", "nodes.html")
async def nodes(visit: Visit) -> Data:
    """All nodes: what they lead and hold, and how full their disks are."""
    state = await visit.view.state.get()
    directories = await _directories(visit)
    partitions = [each for topic in state.topics.values() for each in topic.partitions]
    led: dict[int, int] = {}
    held: dict[int, int] = {}
    behind: dict[int, int] = {}
    for each in partitions:
        if each.leader is not None:
            led[each.leader] = led.get(each.leader, 0) + 1
        for replica in each.replicas:
            held[replica] = held.get(replica, 0) + 1
            if replica not in each.isr:
                behind[replica] = behind.get(replica, 0) + 1
    leader = None if state.quorum is None else state.quorum.leader_id
    rows = []
    for node in sorted(state.described.nodes.values(), key=lambda each: each.id):
        own = directories.get(node.id, [])
        rows.append(
            {
                "id": node.id,
                "address": f"{node.host}:{node.port}",
                "rack": node.rack,
                "state": "fenced" if node.is_fenced else "up",
                "is_controller": node.id == leader,
                "leads": led.get(node.id, 0),
                "replicas": held.get(node.id, 0),
                "out_of_sync": behind.get(node.id, 0),
                "size": sum(one.size_bytes for each in own for one in each.replicas.values()) if own else None,
                "usable": min((each.usable_bytes for each in own if each.usable_bytes is not None), default=None),
                "failed": [each.path for each in own if each.error is not None],
            }
        )
    return {"title": "Nodes", "rows": rows, "age_s": round(visit.view.state.age_s, 1), "stale": visit.view.state.failure}


@page("/nodes/{id}", "node.html")
async def node(visit: Visit) -> Data:
    """One node's settings: those that are not Kafka's defaults, or with `all=1` every one. `all` as id: what brokers share."""
    given = visit.segments["id"]
    resource = _resource(given)
    results = await soon(describe_configs(visit.view.cluster, [resource], include_documentation=True, include_synonyms=True))
    if resource in results.errors:
        raise results.errors[resource]
    entries = results[resource]
    shows_all, search = visit.query.get("all") == "1", visit.query.get("q", "").strip().lower()
    rows = [
        shown_setting(each)
        for each in entries.values()
        if (shows_all or search or not each.is_default) and search in each.name.lower()
    ]
    name = "All brokers" if given == ALL else f"Node {given}"
    directories = [] if given == ALL else (await _directories(visit)).get(int(given), [])
    return {
        "title": name,
        "name": name,
        "id": given,
        "rows": sorted(rows, key=lambda each: (not each["is_dynamic"], each["is_default"], each["name"])),
        "total": len(entries),
        "shows_all": shows_all,
        "search": search,
        "directories": [_directory(each) for each in directories],
    }


def _resource(given: str) -> ConfigResource:
    if given != ALL and (not given.isascii() or not given.isdigit()):
        raise Refused(404, f"there is no node {given}: /nodes lists them")
    return ConfigResource(ConfigResourceType.BROKER, "" if given == ALL else given)


_DYNAMIC = (ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, ConfigSource.DYNAMIC_TOPIC_CONFIG)


def shown_setting(each: ConfigEntry) -> Data:
    """A setting for a page: its value, where that comes from, and what else could give it one."""
    return {
        "name": each.name,
        "value": "(hidden)" if each.is_sensitive else each.value,
        "source": source_text(each.source),
        "is_default": each.is_default,
        "is_dynamic": each.source in _DYNAMIC,
        "is_read_only": each.is_read_only,
        "is_sensitive": each.is_sensitive,
        "documentation": each.documentation or "",
        "type": each.type.name.lower(),
        "synonyms": [
            {"name": one.name, "value": "(hidden)" if each.is_sensitive else one.value, "source": source_text(one.source)}
            for one in each.synonyms
        ],
    }


def source_text(source: ConfigSource) -> str:
    """Where a value comes from, in words."""
    return {
        ConfigSource.DYNAMIC_TOPIC_CONFIG: "set for the topic",
        ConfigSource.DYNAMIC_BROKER_CONFIG: "set for this broker",
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "set for all brokers",
        ConfigSource.STATIC_BROKER_CONFIG: "server.properties",
        ConfigSource.DEFAULT_CONFIG: "default",
    }.get(source, source.name.lower().replace("_", " "))


@change("/nodes/{id}/settings")
async def set_setting(visit: Visit) -> tuple[str, str]:
    """Set a setting of one broker or of all while they run, or take it back."""
    given = visit.segments["id"]
    name = needed(visit.form, "setting", "the name of the setting")
    value = None if visit.form.get("reset") else visit.form.get("value", "")
    results = await soon(alter_configs(visit.view.cluster, {_resource(given): {name: value}}), CHANGE_S)
    results.raise_first()
    where = "all brokers" if given == ALL else f"broker {given}"
    return f"/nodes/{given}", f"{name} of {where} {'is no longer set' if value is None else 'was set'}."


@page("/quorum", "quorum.html")
async def quorum(visit: Visit) -> Data:
    """The metadata quorum: who leads, and how far the others follow."""
    state = await visit.view.state.get()
    found = state.quorum
    if found is None:
        raise Refused(404, "this cluster does not describe its quorum: its brokers are older than 3.3")
    end = next((each.log_end_offset for each in found.voters if each.id == found.leader_id), found.high_watermark)
    now_ms = int(time.time() * 1000)
    replicas = [(each, "leader" if each.id == found.leader_id else "voter") for each in found.voters]
    replicas += [(each, "observer") for each in found.observers]
    return {
        "title": "Metadata quorum",
        "leader": found.leader_id if found.leader_id >= 0 else None,
        "epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "problems": [each.text for each in quorum_problems(found, state.seen_by)],
        "rows": [
            {
                "id": each.id,
                "role": role,
                "directory": "" if each.directory_id == ZERO_UUID else uuid_text(each.directory_id),
                "end": each.log_end_offset,
                "lag": max(0, end - each.log_end_offset),
                "last_fetch_s": None if each.last_fetch is None else max(0, now_ms - each.last_fetch) / 1000,
                "caught_up_s": None if each.last_caught_up is None else max(0, now_ms - each.last_caught_up) / 1000,
                "endpoints": [f"{one.host}:{one.port}" for one in found.endpoints.get(each.id, ())],
            }
            for each, role in sorted(replicas, key=lambda each: (("leader", "voter", "observer").index(each[1]), each[0].id))
        ],
    }


@page("/log-dirs", "log_dirs.html")
async def log_dirs(visit: Visit) -> Data:
    """The log directories of all brokers."""
    found = await visit.view.log_dirs.get()
    rows = [{"broker": broker, **_directory(each)} for broker, many in sorted(found.items()) for each in many]
    return {"title": "Log directories", "rows": rows, "age_s": round(visit.view.log_dirs.age_s, 1)}


def _directory(each: LogDirDescription) -> Data:
    share = each.usable_bytes / each.total_bytes if each.usable_bytes is not None and each.total_bytes else None
    return {
        "path": each.path,
        "error": None if each.error is None else str(each.error),
        "replicas": len(each.replicas),
        "future": sum(one.is_future for one in each.replicas.values()),
        "size": sum(one.size_bytes for one in each.replicas.values()),
        "total": each.total_bytes,
        "usable": each.usable_bytes,
        "is_little": share is not None and share < LITTLE_DISK,
        "is_cordoned": each.is_cordoned,
    }
