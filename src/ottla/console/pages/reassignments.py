"""Moves of partitions between brokers: plan one, start it, watch it, cancel it, and remove the throttles it has left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from ottla.client.admin.configs import ConfigResource, ConfigSource, describe_configs
from ottla.client.admin.log_dirs import LogDirDescription
from ottla.client.admin.reassignments import PartitionReassignment, list_partition_reassignments
from ottla.client.cluster import Cluster
from ottla.client.reassignment_moves import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    Limits,
    cancel_moves,
    current_assignment,
    live_nodes,
    prepare,
    remove_throttles,
    start,
)
from ottla.client.reassignment_plan import Plan, check_count, moved, plan_json, plan_of, propose, racks_of
from ottla.console.app import Data, Refused, Visit, change, page
from ottla.console.clusters import ClusterView, NotAnswering, soon
from ottla.console.pages.fields import many, whole_number
from ottla.errors import ArgumentError
from ottla.ids import TopicPartition

ROWS_MAX = 500
CHANGE_S = 30.0
PLAN_S = 5.0
RATE_MIN = 1024
DIRECTORY_TIMEOUT_MS = 10_000


@page("/reassignments", "reassignments.html")
async def reassignments(visit: Visit) -> Data:
    """What moves now, and how far it is."""
    view = visit.view
    ongoing, rates = await asyncio.gather(
        soon(list_partition_reassignments(view.cluster)), soon(_throttle_rates(view.cluster)), return_exceptions=True
    )
    if isinstance(ongoing, BaseException):
        raise ongoing
    throttles = {} if isinstance(rates, BaseException) else rates
    sizes = await _sizes(view)
    rows = [_row(key, each, sizes) for key, each in sorted(ongoing.items())[:ROWS_MAX]]
    there, wanted = sum(each["bytes_there"] for each in rows), sum(each["bytes_wanted"] for each in rows)
    state = await view.state.get()
    return {
        "title": "Moves",
        "rows": rows,
        "count": len(ongoing),
        "bytes_there": there,
        "bytes_wanted": wanted,
        "share": there / wanted if wanted else None,
        "throttles": throttles,
        "nodes": sorted(node.id for node in state.described.nodes.values() if not node.is_fenced),
        "down": sorted({broker for each in ongoing.values() for broker in each.adding} - set(view.cluster.brokers)),
    }


def _row(key: TopicPartition, each: PartitionReassignment, sizes: Mapping[int, Mapping[TopicPartition, int]]) -> Data:
    held = {broker: sizes.get(broker, {}).get(key, 0) for broker in each.replicas}
    full = max(held.values(), default=0)
    return {
        "topic": key.topic,
        "partition": key.partition,
        "replicas": list(each.replicas),
        "adding": list(each.adding),
        "removing": list(each.removing),
        "bytes_there": sum(min(held.get(broker, 0), full) for broker in each.adding),
        "bytes_wanted": full * len(each.adding),
    }


async def _sizes(view: ClusterView) -> dict[int, dict[TopicPartition, int]]:
    """The size of each replica by broker, if it is known by now."""
    try:
        found: dict[int, list[LogDirDescription]] = await view.log_dirs.get(wait_s=0.5)
    except NotAnswering:
        return {}
    return {
        broker: {key: one.size_bytes for each in directories for key, one in each.replicas.items() if not one.is_future}
        for broker, directories in found.items()
    }


async def _throttle_rates(cluster: Cluster) -> dict[int, dict[str, str]]:
    """The throttles that are set, by broker."""
    resources = [ConfigResource("broker", str(broker)) for broker in await live_nodes(cluster)]
    results = await describe_configs(cluster, resources, names=[LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE])
    _ = results.errors
    found = {
        int(resource.name): {
            name: entry.value
            for name, entry in entries.items()
            if entry.source is ConfigSource.DYNAMIC_BROKER_CONFIG and entry.value is not None
        }
        for resource, entries in results.values_found.items()
    }
    return {broker: rates for broker, rates in sorted(found.items()) if rates}


def _numbers(text: str) -> list[int]:
    return sorted({whole_number(each, "a broker") for each in text.replace(",", " ").split()})


@page("/reassignments/plan", "reassignment_plan.html")
async def plan(visit: Visit) -> Data:
    """A proposal that moves as few replicas as it can."""
    cluster, query = visit.view.cluster, visit.query
    state = await visit.view.state.get()
    live = await soon(live_nodes(cluster))
    topics = [each for each in many(visit, "topic") if each.strip()]
    data: Data = {
        "title": "Plan moves",
        "brokers": query.get("brokers", ""),
        "chosen": topics,
        "topics": sorted(state.topics),
        "nodes": sorted(live),
        "factor": query.get("factor", ""),
        "plan": None,
    }
    if "brokers" not in query:
        return data
    wanted = _numbers(query["brokers"]) or None
    factor = whole_number(query["factor"], "the number of replicas", 1) if query.get("factor", "").strip() else None
    racks = racks_of(live, wanted, all(node.rack is None for node in live.values()))
    current = await soon(current_assignment(cluster, topics or list(state.topics)), PLAN_S)
    check_count(current, racks, factor)
    proposed = await asyncio.to_thread(propose, current, racks, factor)
    changed = {each: replicas for each, replicas in proposed.items() if replicas != current[each]}
    sizes = await _sizes(visit.view)
    data["plan"] = {
        "json": plan_json(changed),
        "partitions": len(proposed),
        "changed": len(changed),
        "moved": moved(current, proposed),
        "bytes": sum(
            max((sizes.get(broker, {}).get(each, 0) for broker in current[each]), default=0)
            * len(set(new) - set(current[each]))
            for each, new in changed.items()
        ),
        "rows": [
            {"topic": each.topic, "partition": each.partition, "before": current[each], "after": list(new)}
            for each, new in sorted(changed.items())[:ROWS_MAX]
        ],
    }
    return data


@change("/reassignments/start")
async def begin(visit: Visit) -> tuple[str, str]:
    """Start a plan in Kafka's JSON; `throttle` in bytes per second."""
    cluster, form = visit.view.cluster, visit.form
    wanted = _plan(form.get("plan", ""))
    throttle = form.get("throttle", "").strip()
    limits = Limits(whole_number(throttle, "the throttle", RATE_MIN) if throttle else None, None)
    found = await soon(prepare(cluster, wanted, bool(form.get("additional"))), CHANGE_S)
    work = start(cluster, wanted, found, limits, may_change_factor=True, timeout_ms=DIRECTORY_TIMEOUT_MS)
    begun = await soon(work, CHANGE_S)
    count = len(wanted.assignment) - len(begun.errors)
    if begun.errors:
        some = "; ".join(str(each) for each in list(begun.errors.values())[:5])
        raise Refused(409, f"{count:,} of {len(wanted.assignment):,} partitions began to move: {some}")
    return "/reassignments", f"{count:,} {'partition begins' if count == 1 else 'partitions begin'} to move."


def _plan(text: str) -> Plan:
    try:
        return plan_of(json.loads(text))
    except ArgumentError as problem:
        raise Refused(400, f"nothing was moved: {problem}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        form = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}'
        raise Refused(400, f"nothing was moved: the plan must look like {form}") from None


@change("/reassignments/cancel")
async def cancel(visit: Visit) -> tuple[str, str]:
    """Cancel the move of one partition, or with `all` of every one; removes the throttles if nothing moves any more."""
    form = visit.form
    if form.get("all"):
        wanted = None
    else:
        key = TopicPartition(form.get("topic", ""), whole_number(form.get("partition", ""), "the partition"))
        wanted = Plan({key: []}, {})
    notes: list[str] = []
    keeps = wanted is not None
    done, _ = await soon(cancel_moves(visit.view.cluster, wanted, keeps, DIRECTORY_TIMEOUT_MS, notes), CHANGE_S)
    if done.errors:
        raise Refused(409, "; ".join(str(each) for each in list(done.errors.values())[:5]))
    if not done.partitions:
        return "/reassignments", "Nothing was moving any more."
    names = ", ".join(map(str, done.partitions[:3]))
    more = f" and {len(done.partitions) - 3} more" if len(done.partitions) > 3 else ""
    return "/reassignments", " ".join([f"{names}{more} went back to the replicas from before.", *notes])


@change("/reassignments/remove-throttles")
async def clear(visit: Visit) -> tuple[str, str]:
    """Remove the throttles of brokers, and of all topics that have one. Refuses while something moves."""
    cluster = visit.view.cluster
    if await soon(list_partition_reassignments(cluster), CHANGE_S):
        raise Refused(409, "partitions are moving: the throttles stay until they are done, or are cancelled")
    state = await visit.view.state.get()
    results = await soon(
        describe_configs(cluster, [("topic", name) for name in state.topics], names=[LEADER_REPLICAS, FOLLOWER_REPLICAS]),
        CHANGE_S,
    )
    _ = results.errors
    throttled = {
        resource.name
        for resource, entries in results.values_found.items()
        if any(entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG for entry in entries.values())
    }
    notes: list[str] = []
    plan = Plan({TopicPartition(name, 0): [] for name in throttled}, {})
    await soon(remove_throttles(cluster, plan, notes), CHANGE_S)
    return "/reassignments", " ".join(["The throttles were removed.", *notes])
