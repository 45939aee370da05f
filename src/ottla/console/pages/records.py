"""Records of a topic: by place, offset or time, by a search, live; one in full.

A page looks for `SCAN_S` at most, and says where to continue; in a browser with JavaScript, `…/records/search` goes on from
there as a stream of events until the person stops it. Streams have a connection of their own: a broker answers the requests of
a connection one after the other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from starlette.responses import Response

from ottla.client.cluster import Cluster
from ottla.console.app import Data, Refused, Visit, page
from ottla.console.expression import ExpressionError, Search, parse
from ottla.console.formats import FORMS, Reader, header_text
from ottla.console.records import (
    FOUND_BYTES_MAX,
    Range,
    Shown,
    Step,
    Topic,
    backward,
    find_topic,
    forward,
    newest,
    newest_first,
    since,
    tail,
    weight_of,
    whole_range,
)
from ottla.console.streams import Event, event_stream
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

LIMIT = 50
LIMIT_MAX = 500
PLACES = ("newest", "oldest", "offset", "time")
READ_S = 2.0
SCAN_S = 0.8
"""How long a page searches before it is shown."""
SEARCH_S_MAX = 900.0
PROGRESS_S = 0.2
CONTINUED_PARTITIONS_MAX = 200
LEADERLESS_S = 60.0
"""How long a live tail waits for a new leader."""
RETRY_S = 0.5
LEARN = 50
LETTER = "__connect.errors.topic"
"""A header of dead letters."""
BYTES_MAX = 16 * 1024 * 1024
"""What "show all" shows of a key or value."""


class Ask(NamedTuple):
    """What a query asks for."""

    topic: Topic
    whole: Range
    wanted: Range
    place: str
    search: Search | None
    reader: Reader
    limit: int

    @property
    def is_backward(self) -> bool:
        return self.place == "newest"

    def steps(self, cluster: Cluster) -> AsyncGenerator[Step, None]:
        """The scan that finds it."""
        reader = None if self.reader.is_raw else self.reader
        if not self.is_backward:
            return forward(cluster, self.topic, self.wanted, self.search, reader)
        first = min(200, max(1, 4 * self.limit // max(1, len(self.wanted.begins))))
        return backward(cluster, self.topic, self.wanted, self.search, reader, first)

    @property
    def total(self) -> int:
        return sum(end - self.wanted.begins[each] for each, end in self.wanted.ends.items())


async def understand(visit: Visit, cluster: Cluster) -> Ask:
    """What the query asks for, and where that lies."""
    query = visit.query
    place = query.get("from", "newest")
    place = place if place in PLACES else "newest"
    search = parse(query["q"]) if query.get("q", "").strip() else None
    async with asyncio.timeout(READ_S):
        topic = await find_topic(cluster, visit.segments["name"])
        whole = await whole_range(cluster, topic, _partitions(topic, query.get("partition", "")))
        wanted = whole
        if place == "offset":
            offset = whole_number(query.get("offset") or "0")
            begins = {each: min(max(offset, at), whole.ends[each]) for each, at in whole.begins.items()}
            wanted = Range(begins, whole.ends)
        elif place == "time":
            wanted = await since(cluster, topic, whole, _timestamp(query.get("time", "")))
        if query.get("at"):
            wanted = _from_place(wanted, query["at"], is_backward=place == "newest")
        reader = reader_of(visit, topic.name)
        ask = Ask(topic, whole, wanted, place, search, reader, visit.number("limit", LIMIT, 1, LIMIT_MAX))
        if search is not None:
            await learn(cluster, ask)
    return ask


def reader_of(visit: Visit, topic: str) -> Reader:
    """The forms that the query names, and the cluster's registry."""
    schemas = visit.console.schemas(visit.registry_url)
    return Reader(topic, _form(visit.query.get("key")), _form(visit.query.get("value")), schemas)


async def learn(cluster: Cluster, ask: Ask) -> None:
    """A few records tell a reader the forms of the others."""
    if "auto" in ask.reader.forms.values():
        ask.reader.learn(await newest(cluster, ask.topic, ask.wanted, LEARN, 0.3))


def _place_of(ask: Ask, left: Mapping[int, int]) -> str | None:
    """Where a scan goes on, for a link: `<12` (partitions below 12 are done), and `12:500` for the others."""
    if not left or (ask.is_backward and len(ask.wanted.begins) > CONTINUED_PARTITIONS_MAX):
        return None
    first = min(left)
    begun = ask.wanted.ends if ask.is_backward else ask.wanted.begins
    done = [f"{each}:" for each in ask.wanted.begins if each > first and each not in left]
    moved = [f"{each}:{at}" for each, at in sorted(left.items()) if at != begun[each]]
    return ",".join([f"<{first}", *moved, *done][: 2 * CONTINUED_PARTITIONS_MAX])


def _from_place(wanted: Range, at: str, *, is_backward: bool) -> Range:
    """What is left of a range from a place in a link on."""
    begins, ends = dict(wanted.begins), dict(wanted.ends)
    for each in at.split(","):
        if each.startswith("<"):
            first = whole_number(each[1:])
            for partition in [one for one in begins if one < first]:
                begins[partition] = ends[partition]
            continue
        name, _, offset = each.partition(":")
        partition = whole_number(name)
        if partition not in begins:
            continue
        if not offset:
            begins[partition] = ends[partition]
        elif is_backward:
            ends[partition] = max(begins[partition], min(ends[partition], whole_number(offset)))
        else:
            begins[partition] = max(begins[partition], min(ends[partition], whole_number(offset)))
    return Range(begins, ends)


@page("/topics/{name}/records", "records.html")
async def records(visit: Visit) -> Data:
    """Some records, from the place that the query names."""
    cluster, query = visit.view.cluster, visit.query
    problem = ""
    try:
        ask = await understand(visit, cluster)
    except ExpressionError as error:
        if visit.request.url.path.startswith("/api/"):
            raise Refused(400, str(error)) from None
        problem = str(error)
        async with asyncio.timeout(READ_S):
            topic = await find_topic(cluster, visit.segments["name"])
        nothing = Range({}, {})
        ask = Ask(topic, nothing, nothing, "newest", None, reader_of(visit, topic.name), LIMIT)
    found: list[Shown] = []
    seen = size = 0
    left: dict[int, int] = {}
    deadline_s = time.monotonic() + (READ_S if ask.search is None else SCAN_S)
    try:
        async with asyncio.timeout(READ_S), aclosing(ask.steps(cluster)) as steps:
            async for step in steps:
                found += step.found
                seen, size, left = seen + step.records, size + step.size, step.positions
                if len(found) >= ask.limit or weight_of(found) > FOUND_BYTES_MAX // 2 or time.monotonic() > deadline_s:
                    break
    except TimeoutError:
        if not seen:
            raise
    found, left = _cut(ask, found, left)
    rows = await shown_rows(found, ask.reader)
    place = _place_of(ask, left)
    return {
        "title": f"Records of {ask.topic.name}",
        "name": ask.topic.name,
        "place": ask.place,
        "limit": ask.limit,
        "partition": query.get("partition", ""),
        "offset": query.get("offset", ""),
        "time": query.get("time", ""),
        "partitions": sorted(ask.topic.leaders),
        "forms": FORMS,
        "key_form": ask.reader.forms["key"],
        "value_form": ask.reader.forms["value"],
        "q": query.get("q", ""),
        "problem": problem,
        "rows": rows,
        "total": sum(ask.whole.ends[each] - ask.whole.begins[each] for each in ask.whole.begins),
        "searched": seen,
        "searched_of": ask.total,
        "searched_bytes": size,
        "next_at": place,
        "has_letters": any(name == LETTER for each in found for name, _ in each.headers),
        "is_unfinished": bool(left),
    }


def _cut(ask: Ask, found: list[Shown], left: dict[int, int]) -> tuple[list[Shown], dict[int, int]]:
    """The first `limit` of what was found, in order, and where to go on: before what was cut off."""
    found.sort(key=newest_first if ask.is_backward else lambda each: (each.timestamp, each.partition, each.offset))
    kept, rest = found[: ask.limit], found[ask.limit :]
    left = dict(left)
    for each in rest:
        if ask.is_backward:
            left[each.partition] = max(left.get(each.partition, 0), each.offset + 1)
        else:
            left[each.partition] = min(left.get(each.partition, 1 << 62), each.offset)
    return kept, left


async def shown_rows(found: list[Shown], reader: Reader) -> list[Data]:
    """Records as rows; in a thread, since a schema registry may have to be asked."""

    def rows() -> list[Data]:
        if "auto" in reader.forms.values():
            reader.learn(found)
        return [shown_record(each, reader) for each in found]

    return await asyncio.to_thread(rows)


def shown_record(each: Shown, reader: Reader, limit: int = 64 * 1024) -> Data:
    """A record as plain data."""
    return {
        "partition": each.partition,
        "offset": each.offset,
        "timestamp": each.timestamp,
        "key": reader.content(each, "key", limit, each.is_control)._asdict(),
        "value": reader.content(each, "value", limit, each.is_control)._asdict(),
        "headers": [{"name": name, "value": header_text(value)} for name, value in each.headers],
        "is_control": each.is_control,
        "is_transactional": each.is_transactional,
    }


@asynccontextmanager
async def own_cluster(visit: Visit) -> AsyncIterator[Cluster]:
    """A connection for one stream."""
    cluster = visit.view.another()
    try:
        yield cluster
    finally:
        cluster.close()


@page("/topics/{name}/records/search", "")
async def search(visit: Visit) -> Response:
    """A search as a stream of events: `rows`, `progress`, and `end`. Closing the stream stops it."""
    check_search(visit)
    return event_stream(visit, _searching(visit))


def check_search(visit: Visit) -> None:
    """An error in the expression is the response's, not the stream's."""
    try:
        parse(visit.query.get("q", "").strip() or "offset >= 0")
    except ExpressionError as error:
        raise Refused(400, str(error)) from None


async def _searching(visit: Visit) -> AsyncGenerator[Event, None]:
    async with own_cluster(visit) as cluster:
        ask = await understand(visit, cluster)
        limit = visit.number("limit", LIMIT, 1, 10 * LIMIT_MAX)
        matched = seen = size = 0
        began_s = told_s = time.monotonic()
        left: dict[int, int] = {}
        async with aclosing(ask.steps(cluster)) as steps:
            async for step in steps:
                seen, size, left = seen + step.records, size + step.size, step.positions
                found = step.found
                if matched + len(found) > limit:
                    found, left = _cut(ask._replace(limit=limit - matched), found, left)
                matched += len(found)
                if found:
                    rows = await shown_rows(found, ask.reader)
                    yield Event("rows", _rows(visit, ask.topic.name, rows))
                now_s = time.monotonic()
                is_over = matched >= limit or now_s - began_s > SEARCH_S_MAX
                if now_s - told_s > PROGRESS_S or is_over:
                    told_s = now_s
                    yield _progress(ask, seen, size, matched, now_s - began_s, left)
                if is_over:
                    return
        yield _progress(ask, seen, size, matched, time.monotonic() - began_s, {})


def _progress(ask: Ask, seen: int, size: int, matched: int, took_s: float, left: Mapping[int, int]) -> Event:
    data = {"records": seen, "of": ask.total, "bytes": size, "matched": matched, "seconds": took_s, "at": _place_of(ask, left)}
    return Event("progress", data)


def _rows(visit: Visit, name: str, rows: list[Data]) -> Data:
    """Rows of the table as HTML, or below /api as data."""
    if visit.request.url.path.startswith("/api/"):
        return {"rows": rows}
    return {"html": visit.console.fragment("record_rows.html", visit, name=name, rows=rows), "count": len(rows)}


@page("/topics/{name}/records/tail", "")
async def tailing(visit: Visit) -> Response:
    """New records as a stream of events. The ids of events are `partition:offset` lists: after a lost connection, the browser
    goes on exactly where it was."""
    check_search(visit)
    return event_stream(visit, _tailing(visit))


async def _tailing(visit: Visit) -> AsyncGenerator[Event, None]:
    async with own_cluster(visit) as cluster:
        ask = await understand(visit, cluster)
        begins = dict(ask.whole.ends if ask.place == "newest" else ask.wanted.begins)
        for each in filter(None, visit.request.headers.get("last-event-id", "").split(",")):
            partition, _, offset = each.partition(":")
            if partition.isdigit() and offset.isdigit() and int(partition) in begins:
                begins[int(partition)] = max(ask.whole.begins[int(partition)], int(offset))
        yield Event("begin", {"partitions": len(begins)})
        reader = None if ask.reader.is_raw else ask.reader
        topic, is_replay = ask.topic, ask.place != "newest"
        lost_s: float | None = None
        """Since when a leader cannot be read."""
        while True:
            try:
                async with aclosing(tail(cluster, topic, begins, ask.search, reader, is_replay)) as pieces:
                    async for found, skipped, positions in pieces:
                        begins, lost_s = positions, None
                        rows = await shown_rows(found, ask.reader)
                        is_short = len(positions) <= CONTINUED_PARTITIONS_MAX
                        place = ",".join(f"{each}:{at}" for each, at in positions.items()) if is_short else ""
                        yield Event("rows", {**_rows(visit, topic.name, rows), "skipped": skipped}, place)
            except KafkaError as error:
                now_s = time.monotonic()
                lost_s = now_s if lost_s is None else lost_s
                if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:  # records were deleted where it stood
                    whole = await whole_range(cluster, topic, list(begins))
                    begins = {each: max(at, whole.begins.get(each, at)) for each, at in begins.items()}
                elif not error.is_retriable or now_s - lost_s > LEADERLESS_S:
                    raise
            await asyncio.sleep(RETRY_S)
            moved = await find_topic(cluster, topic.name)
            if begins.keys() <= moved.leaders.keys():
                topic = moved


async def find_record(cluster: Cluster, topic: Topic, partition: int, offset: int) -> tuple[Shown, Range]:
    """One record, and the range of its partition."""
    if partition not in topic.leaders:
        raise Refused(404, f"topic {topic.name} has no partition {partition}, or it has no leader now")
    whole = await whole_range(cluster, topic, [partition])
    if whole.begins[partition] <= offset < whole.ends[partition]:
        async with aclosing(forward(cluster, topic, Range({partition: offset}, {partition: offset + 1}))) as steps:
            async for step in steps:
                for each in step.found:
                    if each.offset == offset:
                        return each, whole
    begin, end = whole.begins[partition], whole.ends[partition]
    raise Refused(
        404,
        f"there is no record at offset {offset}: partition {partition} has {begin} to {end - 1}, less what was compacted",
    )


@page("/topics/{name}/records/{partition}/{offset}", "record.html")
async def record(visit: Visit) -> Data:
    """One record in full."""
    partition, offset = whole_number(visit.segments["partition"]), whole_number(visit.segments["offset"])
    async with asyncio.timeout(READ_S):
        topic = await find_topic(visit.view.cluster, visit.segments["name"])
        found, whole = await find_record(visit.view.cluster, topic, partition, offset)
    reader = reader_of(visit, topic.name)
    limit = BYTES_MAX if visit.query.get("all") == "1" else 64 * 1024
    return {
        "title": f"{topic.name}-{partition} @ {offset}",
        "name": topic.name,
        "record": await asyncio.to_thread(shown_record, found, reader, limit),
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
        "key_form": reader.forms["key"],
        "value_form": reader.forms["value"],
    }


def _partitions(topic: Topic, given: str) -> list[int]:
    if not given:
        return sorted(topic.leaders)
    number = whole_number(given)
    if number not in topic.leaders:
        raise Refused(404, f"topic {topic.name} has no partition {number}, or it has no leader now")
    return [number]


def _timestamp(given: str) -> int:
    """Milliseconds since 1970, or ISO 8601 (UTC without a zone)."""
    if given.isdigit():
        return int(given)
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise Refused(400, f"{given!r} is no time: write 2026-01-31T12:00, or milliseconds since 1970") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def whole_number(given: str) -> int:
    """A number of a query."""
    if not given.isdigit() or len(given) > 18:
        raise Refused(400, f"{given!r} is no whole number")
    return int(given)


def _form(given: Any) -> str:
    return given if given in FORMS else "auto"
