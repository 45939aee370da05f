"""Sends records: one from a form, many from lines or a file, a copy of another, dead letters back to where they came from."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import quote

from ottla.client.admin.offsets import delete_records
from ottla.client.cluster import Cluster
from ottla.console.app import Data, Refused, Visit, change, page
from ottla.console.formats import (
    FORMS,
    WRITABLE,
    Reader,
    form_of,
    header_text,
    parse,
    parse_headers,
    parse_plain,
    plain_header,
)
from ottla.console.pages.records import READ_S, Ask, check_search, find_record, own_cluster, understand, whole_number
from ottla.console.records import Shown, find_topic, forward
from ottla.console.sending import Outgoing, send
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

PREFIX: Final = "__connect.errors."
"""How `ottla.Worker` and Kafka Connect name the headers of dead letters."""
LETTERS_MAX: Final = 100_000
"""How many letters one run looks at."""
PREVIEW_S: Final = 1.5
ORIGINS_SHOWN: Final = 50


@page("/topics/{name}/send", "send.html")
async def sender(visit: Visit) -> Data:
    """Forms for one record and for many; `copy=partition:offset` fills in what that record has."""
    async with asyncio.timeout(READ_S):
        topic = await find_topic(visit.view.cluster, visit.segments["name"])
        filled: Data = {"key": "", "key_form": "text", "value": "", "value_form": "text", "headers": "", "partition": ""}
        if "copy" in visit.query:
            partition, _, offset = visit.query["copy"].partition(":")
            if topic.mask is not None:
                raise Refused(403, f"records of {topic.name} cannot be edited: fields of them are masked")
            found, _ = await find_record(visit.view.cluster, topic, whole_number(partition), whole_number(offset))
            filled = _filled(found)
    return {
        "title": f"Send to {topic.name}",
        "name": topic.name,
        "partitions": sorted(topic.leaders),
        "forms": ("null", *WRITABLE),
        "filled": filled,
        "copied": visit.query.get("copy", ""),
    }


def _filled(found: Shown) -> Data:
    """A record's parts as a form has them: texts that become the same bytes again."""
    parts: Data = {"partition": str(found.partition)}
    for part, data in (("key", found.key), ("value", found.value)):
        form = "null" if data is None else form_of(data)
        form = form if form in ("null", "text", "json") else "hex"
        parts[part] = "" if data is None else data.hex(" ") if form == "hex" else data.decode()
        if "\r" in parts[part] or parts[part].startswith("\n"):  # browsers would change these
            form, parts[part] = "hex", (data or b"").hex(" ")
        parts[f"{part}_form"] = form
    simple = all(
        value is not None
        and form_of(value) in ("text", "json")
        and not {*name} & {*":\r\n"}
        and name == name.strip()
        and (text := value.decode()) == text.strip()
        and "\n" not in text
        and name[:1] not in ("{", "[")
        for name, value in found.headers
    )
    lines = [f"{name}: {header_text(value)}" for name, value in found.headers]
    as_json = json.dumps([plain_header(name, value) for name, value in found.headers], ensure_ascii=False)
    parts["headers"] = "\n".join(lines) if simple else as_json
    return parts


@change("/topics/{name}/send")
async def send_one(visit: Visit) -> tuple[str, str]:
    """One record."""
    name, form = visit.segments["name"], visit.form
    parts: dict[str, bytes | None] = {}
    for part in ("key", "value"):
        kind = form.get(f"{part}_form", "text")
        if part == "key" and kind == "text" and not form.get("key"):
            kind = "null"
        try:
            parts[part] = None if kind == "null" else parse(form.get(part, "").replace("\r\n", "\n"), kind)
        except ValueError as problem:
            raise Refused(400, f"nothing was sent: the {part} is no {kind}: {problem}") from None
    given = form.get("partition", "")
    timestamp = form.get("timestamp", "")
    record = Outgoing(
        parts["key"],
        parts["value"],
        tuple(_headers(form.get("headers", ""))),
        whole_number(given) if given else None,
        whole_number(timestamp) if timestamp else None,
    )
    (place,) = await send(visit.view.cluster, name, [record])
    done = f"The record was sent to partition {place.partition}, offset {place.offset}."
    return f"/topics/{_segment(name)}/records/{place.partition}/{place.offset}", done


def _headers(text: str) -> list[tuple[str, bytes | None]]:
    """Lines of `name: value`, or JSON."""
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return parse_headers(json.loads(text))
        except (ValueError, RecursionError) as problem:
            raise Refused(400, f"nothing was sent: the headers are no JSON of headers: {problem}") from None
    found: list[tuple[str, bytes | None]] = []
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, value = line.partition(":")
        if line.strip():
            if not colon:
                raise Refused(400, f"nothing was sent: line {number} of the headers has no colon: write name: value")
            found.append((name.strip(), value.strip().encode()))
    return found


@change("/topics/{name}/send-many")
async def send_many(visit: Visit) -> tuple[str, str]:
    """Many records: lines of text, or of JSON as a download has them. A wrong line, and nothing is sent."""
    name, form = visit.segments["name"], visit.form
    text = form.get("file") or form.get("lines", "")
    lines = [(number, line) for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1) if line.strip()]
    if not lines:
        raise Refused(400, "nothing was sent: there are no lines")
    keeps_partitions = form.get("keep") == "1"
    records = []
    for number, line in lines:
        try:
            records.append(
                _of_json(line, keeps_partitions) if form.get("kind") == "jsonl" else Outgoing(None, parse(line, "text"))
            )
        except (ValueError, RecursionError) as problem:
            raise Refused(400, f"nothing was sent: line {number}: {problem}") from None
    await send(visit.view.cluster, name, records)
    done = f"{len(records):,} record{'s were' if len(records) > 1 else ' was'} sent."
    return f"/topics/{_segment(name)}/records", done


def _of_json(line: str, keeps_partitions: bool) -> Outgoing:
    row = json.loads(line)
    if not isinstance(row, dict) or not row.keys() & {"key", "value"}:
        raise ValueError('it is no object with "key" or "value"')
    for name in ("partition", "timestamp"):
        if row.get(name) is not None and (not isinstance(row[name], int) or not 0 <= row[name] < 1 << 62):
            raise ValueError(f"its {name} is no whole number")
    return Outgoing(
        parse_plain(row.get("key"), _own_form(row.get("key_form"))),
        parse_plain(row.get("value"), _own_form(row.get("value_form"))),
        tuple(parse_headers(row.get("headers") or [])),
        row.get("partition") if keeps_partitions else None,
        row.get("timestamp") if keeps_partitions else None,
    )


def _own_form(form: Any) -> str:
    """The form that a download names; what a registry or Kafka itself wrote cannot be written here."""
    if form in (None, "null"):
        return ""
    if form not in (*FORMS, *WRITABLE) or form == "schema":
        raise ValueError(f"its form {str(form)[:40]!r} cannot be written here: choose one of {', '.join(WRITABLE)}")
    return str(form)


@change("/topics/{name}/records/{partition}/{offset}/resend")
async def resend(visit: Visit) -> tuple[str, str]:
    """The same bytes once more, to this topic or another."""
    cluster, target = visit.view.cluster, visit.form.get("target", "").strip() or visit.segments["name"]
    topic = await find_topic(cluster, visit.segments["name"])
    if topic.mask is not None and target != topic.name:
        raise Refused(403, f"nothing was sent: fields of {topic.name} are masked, so records stay in this topic")
    found, _ = await find_record(
        cluster, topic._replace(mask=None), whole_number(visit.segments["partition"]), whole_number(visit.segments["offset"])
    )
    if found.is_control:
        raise Refused(400, "nothing was sent: this is a control record, which only a broker writes")
    (place,) = await send(cluster, target, [Outgoing(found.key, found.value, found.headers)])
    done = f"The record was sent to {target}, partition {place.partition}, offset {place.offset}."
    return f"/topics/{_segment(target)}/records/{place.partition}/{place.offset}", done


# Dead letters


class Letters:
    """What a scan of dead letters has found."""

    def __init__(self) -> None:
        self.seen = 0
        self.without_origin = 0
        self.origins: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    def origin(self, each: Shown, own: str) -> tuple[str, int | None] | None:
        """Where a letter came from; None if it does not say, or names its own topic."""
        said = {name: value for name, value in each.headers if name.startswith(PREFIX)}
        self.seen += 1
        topic = (said.get(f"{PREFIX}topic") or b"").decode("utf-8", "replace")
        if not topic or topic == own:
            self.without_origin += 1
            return None
        self.origins[topic] += 1
        self.errors[(said.get(f"{PREFIX}exception.class.name") or b"unknown").decode("utf-8", "replace")] += 1
        partition = (said.get(f"{PREFIX}partition") or b"").decode("latin-1")
        return topic, int(partition) if partition.isdigit() and len(partition) < 10 else None


@page("/topics/{name}/letters", "letters.html")
async def letters(visit: Visit) -> Data:
    """The dry run: where the dead letters of a topic would go. Nothing is sent."""
    check_search(visit)
    cluster = visit.view.cluster
    ask = await understand(visit, cluster)
    found = Letters()
    is_cut = False
    try:
        async with asyncio.timeout(PREVIEW_S), aclosing(_letters(cluster, ask)) as pieces:
            async for some, _ in pieces:
                for each in some:
                    found.origin(each, ask.topic.name)
                if found.seen >= LETTERS_MAX:
                    is_cut = True
                    break
    except TimeoutError:
        is_cut = True
    known = (await visit.view.state.get()).topics
    if found.origins.keys() - known.keys():
        visit.view.state.forget()
        known = (await visit.view.state.get()).topics
    return {
        "title": f"Dead letters of {ask.topic.name}",
        "name": ask.topic.name,
        "q": visit.query.get("q", ""),
        "seen": found.seen,
        "is_cut": is_cut,
        "without_origin": found.without_origin,
        "ready": sum(count for topic, count in found.origins.items() if topic in known),
        "origins": [
            {"topic": topic, "count": count, "exists": topic in known}
            for topic, count in found.origins.most_common(ORIGINS_SHOWN)
        ],
        "errors": [{"name": name, "count": count} for name, count in found.errors.most_common(ORIGINS_SHOWN)],
        "ends": json.dumps({str(each): end for each, end in ask.whole.ends.items()}),
    }


async def _letters(cluster: Cluster, ask: Ask) -> AsyncGenerator[tuple[list[Shown], dict[int, int]], None]:
    reader: Reader | None = None if ask.reader.is_raw else ask.reader
    async with aclosing(forward(cluster, ask.topic, ask.wanted, ask.search, reader)) as steps:
        async for step in steps:
            yield [each for each in step.found if not each.is_control], step.positions


@change("/topics/{name}/letters")
async def redrive(visit: Visit) -> tuple[str, str]:
    """Send the dead letters back that the dry run has shown: up to the offsets that it saw."""
    name = visit.segments["name"]
    sent = missing = 0
    found = Letters()
    async with own_cluster(visit) as cluster:
        topic = await find_topic(cluster, name)
        visit.take_query({"q": visit.form.get("q", ""), "from": "oldest"})
        check_search(visit)
        ask = await understand(visit, cluster)
        if ask.topic.mask is not None:
            if ask.search is not None:
                raise Refused(403, f"nothing was sent: fields of {name} are masked, so send all of its letters back, not some")
            ask = ask._replace(topic=ask.topic._replace(mask=None))  # they go back as they are
        try:
            seen = {int(each): int(end) for each, end in json.loads(visit.form.get("ends", "{}")).items()}
        except (ValueError, AttributeError):
            raise Refused(400, "nothing was sent: look at the dry run again") from None
        ends = {each: min(end, seen.get(each, end)) for each, end in ask.wanted.ends.items()}
        ask = ask._replace(wanted=ask.wanted._replace(ends=ends))
        counts: dict[str, int] = {}
        async with aclosing(_letters(cluster, ask)) as pieces:
            async for some, _ in pieces:
                by_topic: dict[str, list[Outgoing]] = {}
                for each in some:
                    origin = found.origin(each, name)
                    if origin is None:
                        continue
                    target, partition = origin
                    if target not in counts:
                        counts[target] = await _partition_count(cluster, target)
                    if not counts[target]:
                        missing += 1
                        continue
                    place = partition if partition is not None and partition < counts[target] else None
                    by_topic.setdefault(target, []).append(Outgoing(each.key, each.value, each.headers, place))
                for target, records in by_topic.items():
                    await send(cluster, target, records)
                    sent += len(records)
                if found.seen >= LETTERS_MAX:
                    break
        left = found.without_origin + missing
        done = f"{sent:,} letters were sent back"
        done += f"; {left:,} stay here, since they name no topic or one that does not exist." if left else "."
        if visit.form.get("delete") == "1" and ask.search is None and not left and found.seen < LETTERS_MAX:
            results = await delete_records(cluster, {(topic.name, each): end for each, end in ends.items()})
            results.raise_first()
            done += " They were deleted here."
    return f"/topics/{_segment(name)}/letters", done


async def _partition_count(cluster: Cluster, name: str) -> int:
    """0 if there is no such topic."""
    try:
        return (await find_topic(cluster, name)).partition_count
    except KafkaError as error:
        if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            return 0
        raise


def _segment(name: str) -> str:
    return quote(name, safe="")
