"""Records of a topic: by place, offset or time; one in full; and new ones."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from ottla.console.app import Data, Refused, Visit, page
from ottla.console.formats import FORMS, show
from ottla.console.records import Range, Shown, Topic, find_topic, forward, newest, since, whole_range

LIMIT = 50
LIMIT_MAX = 500
PLACES = ("newest", "oldest", "offset", "time")
READ_S = 2.0


@page("/topics/{name}/records", "records.html")
async def records(visit: Visit) -> Data:
    """Some records, from the place that the query names."""
    cluster, query = visit.view.cluster, visit.query
    async with asyncio.timeout(READ_S):
        topic = await find_topic(cluster, visit.segments["name"])
        partition = query.get("partition", "")
        partitions = _partitions(topic, partition)
        whole = await whole_range(cluster, topic, partitions)
    place, limit = query.get("from", "newest"), visit.number("limit", LIMIT, 1, LIMIT_MAX)
    place = place if place in PLACES else "newest"
    if place == "newest":
        found = await newest(cluster, topic, whole, limit, READ_S)
    else:
        wanted = await _range(visit, topic, whole, place)
        found = []
        async for some in forward(cluster, topic, wanted, limit, READ_S):
            found += some
        found = sorted(found, key=lambda each: (each.timestamp, each.partition, each.offset))[:limit]
    key_form, value_form = _form(query.get("key", "auto")), _form(query.get("value", "auto"))
    return {
        "title": f"Records of {topic.name}",
        "name": topic.name,
        "place": place,
        "limit": limit,
        "partition": partition,
        "offset": query.get("offset", ""),
        "time": query.get("time", ""),
        "partitions": sorted(topic.leaders),
        "forms": FORMS,
        "key_form": key_form,
        "value_form": value_form,
        "rows": [shown_record(each, key_form, value_form) for each in found],
        "total": sum(whole.ends[each] - whole.begins[each] for each in whole.begins),
    }


@page("/topics/{name}/records/{partition}/{offset}", "record.html")
async def record(visit: Visit) -> Data:
    """One record in full."""
    cluster = visit.view.cluster
    topic = await find_topic(cluster, visit.segments["name"])
    partition, offset = _number(visit.segments["partition"]), _number(visit.segments["offset"])
    if partition not in topic.leaders:
        raise Refused(404, f"topic {topic.name} has no partition {partition}, or it has no leader now")
    whole = await whole_range(cluster, topic, [partition])
    found: Shown | None = None
    if whole.begins[partition] <= offset < whole.ends[partition]:
        wanted = Range({partition: offset}, {partition: offset + 1})
        async for some in forward(cluster, topic, wanted, 1, READ_S):
            found = next((each for each in some if each.offset == offset), found)
    if found is None:
        begin, end = whole.begins[partition], whole.ends[partition]
        raise Refused(
            404,
            f"there is no record at offset {offset}: partition {partition} has {begin} to {end - 1}, less what was compacted",
        )
    key_form, value_form = _form(visit.query.get("key", "auto")), _form(visit.query.get("value", "auto"))
    limit = 16 * 1024 * 1024 if visit.query.get("all") == "1" else 64 * 1024
    return {
        "title": f"{topic.name}-{partition} @ {offset}",
        "name": topic.name,
        "record": shown_record(found, key_form, value_form, limit),
        "batch": {
            "compression": found.codec,
            "producer_id": found.producer_id if found.producer_id >= 0 else None,
            "producer_epoch": found.producer_epoch,
            "sequence": found.sequence,
            "leader_epoch": found.leader_epoch,
            "is_transactional": found.is_transactional,
            "is_control": found.is_control,
            "time_kind": "append time" if found.is_append_time else "create time",
        },
        "first": whole.begins[partition],
        "end": whole.ends[partition],
        "forms": FORMS,
        "key_form": key_form,
        "value_form": value_form,
    }


def shown_record(each: Shown, key_form: str, value_form: str, limit: int = 64 * 1024) -> Data:
    """A record as plain data."""
    return {
        "partition": each.partition,
        "offset": each.offset,
        "timestamp": each.timestamp,
        "key": show(each.key, key_form, limit)._asdict(),
        "value": show(each.value, value_form, limit)._asdict(),
        "headers": [{"name": name, "value": show(value).text} for name, value in each.headers],
        "is_control": each.is_control,
    }


def _partitions(topic: Topic, given: str) -> list[int]:
    if not given:
        return sorted(topic.leaders)
    number = _number(given)
    if number not in topic.leaders:
        raise Refused(404, f"topic {topic.name} has no partition {number}, or it has no leader now")
    return [number]


async def _range(visit: Visit, topic: Topic, whole: Range, place: str) -> Range:
    if place == "oldest":
        return whole
    if place == "offset":
        offset = _number(visit.query.get("offset") or "0")
        return Range({each: min(max(offset, at), whole.ends[each]) for each, at in whole.begins.items()}, whole.ends)
    return await since(visit.view.cluster, topic, whole, _timestamp(visit.query.get("time", "")))


def _timestamp(given: str) -> int:
    """Milliseconds since 1970, or ISO 8601 (UTC without a zone)."""
    if given.isdigit():
        return int(given)
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise Refused(400, f"{given!r} is no time: write 2026-01-31T12:00, or milliseconds since 1970") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _number(given: str) -> int:
    if not given.isdigit() or len(given) > 18:
        raise Refused(400, f"{given!r} is no whole number")
    return int(given)


def _form(given: Any) -> str:
    return given if given in FORMS else "auto"
