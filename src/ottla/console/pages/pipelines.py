"""Pipelines: what runs of `ottla pipeline` read and write, and how they are.

A run tells its flows on the port of its metrics; the addresses are given to the console. Groups whose offsets a Spark query has
committed are shown as well: of these only the topics that they read and their lag are known.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from ottla.console.app import Data, Visit, page
from ottla.console.clusters import Kept, NotAnswering, lag_of, soon
from ottla.errors import KafkaError, OttlaError

ANSWER_S = 1.0
ANSWER_BYTES_MAX = 4 << 20
FRESH_S = 3.0
COMMITTED_BY_SPARK = "committed by a Spark query"
"""The metadata of offsets that a query of ours has committed."""
GROUPS_MAX = 300
"""So many groups without members are looked at."""


@page("/pipelines", "pipelines.html")
async def pipelines(visit: Visit) -> Data:
    """All runs that are known, and groups that queries report to."""
    runs = await asyncio.gather(*(_run(visit.console.runs, address) for address in visit.settings.pipelines))
    try:
        groups, failure = await soon(_groups(visit)), ""
    except (NotAnswering, KafkaError) as silent:
        groups, failure = [], str(silent)
    shown = [(flow["reads"], flow["flow"], flow["writes"]) for run in runs for flow in run["flows"]]
    shown += [([f"topic {each}" for each in group["topics"]], f"group {group['name']}", "") for group in groups]
    return {
        "title": "Pipelines",
        "runs": runs,
        "groups": groups,
        "failure": failure,
        "picture": str(picture(shown)),
        "now": time.time(),
    }


async def _run(known: dict[str, Kept[Data]], address: str) -> Data:
    """What a run says of itself, or why it says nothing."""
    if address not in known:

        async def ask() -> Data:
            return await asyncio.to_thread(_flows, address)

        known[address] = Kept(ask, FRESH_S)
    try:
        found = await known[address].get(wait_s=ANSWER_S + 0.3)
    except NotAnswering as silent:
        return {"address": address, "pipeline": "", "failure": str(silent), "flows": [], "is_ready": False}
    return {**found, "address": address, "failure": known[address].failure or ""}


def _flows(address: str) -> Data:
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/flows", timeout=ANSWER_S) as answer:
            found = json.loads(answer.read(ANSWER_BYTES_MAX))
        flows = [_flow(each) for each in found["flows"]]
        return {
            "pipeline": str(found["pipeline"]),
            "is_ready": bool(found["isReady"]),
            "start": float(found["startTime"]),
            "restarts": int(found["restarts"]),
            "flows": flows,
        }
    except OSError as problem:
        raise OttlaError(f"the run at {address} does not answer: {getattr(problem, 'reason', None) or problem}") from None
    except (ValueError, KeyError, TypeError):
        raise OttlaError(
            f"what answers at {address} is no run of ottla pipeline: give the address of its --metrics-port"
        ) from None


def _flow(each: Mapping[str, Any]) -> Data:
    return {
        "flow": str(each["flow"]),
        "kind": str(each["kind"]),
        "reads": [str(one) for one in each["reads"]],
        "writes": str(each["writes"]),
        "rows": int(each["rows"]),
        "rate": each.get("rowsPerSecond"),
        "batch_s": each.get("batchSeconds"),
        "ended": each.get("lastBatchTime"),
        "lag": each.get("lag"),
        "error": str(each["lastError"]) if each.get("lastError") else "",
        "error_time": each.get("lastErrorTime"),
    }


async def _groups(visit: Visit) -> list[Data]:
    """Groups without members whose offsets a Spark query has committed."""
    view = visit.view
    listed = await view.groups.get()
    names = [each.group_id for each in listed if each.protocol == "" and each.state == "Empty"][:GROUPS_MAX]
    if not names:
        return []
    ends = await view.ends.get()
    found = []
    for name, offsets in (await view.committed(names)).items():
        if isinstance(offsets, KafkaError):
            continue
        if any(each is not None and each.metadata == COMMITTED_BY_SPARK for each in offsets.values()):
            total, rows = lag_of(offsets, ends.ends)
            found.append({"name": name, "lag": total, "topics": sorted({each["topic"] for each in rows})})
    return found


# The picture: columns from what is read to what is written, drawn on the server

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 34, 56, 14, 8
TEXT_CHARACTERS = 26
NODES_MAX = 200


class _Box(NamedTuple):
    name: str
    is_flow: bool


def picture(flows: Sequence[tuple[Sequence[str], str, str]]) -> Markup:
    """What reads and writes what, as SVG: (what a flow reads, its name, what it writes)."""
    edges: list[tuple[_Box, _Box]] = []
    for reads, name, writes in flows:
        flow = _Box(name, True)
        edges += [(_Box(each, False), flow) for each in reads]
        if writes:
            edges.append((flow, _Box(writes, False)))
    boxes = list(dict.fromkeys(box for edge in edges for box in edge))
    if not boxes or len(boxes) > NODES_MAX:
        return Markup("")
    column = _columns(boxes, edges)
    rows: dict[int, int] = {}
    places: dict[_Box, tuple[int, int]] = {}
    for box in sorted(boxes, key=lambda each: (column[each], boxes.index(each))):
        row = rows[column[box]] = rows.get(column[box], -1) + 1
        places[box] = (MARGIN + column[box] * (BOX_WIDTH + GAP_X), MARGIN + row * (BOX_HEIGHT + GAP_Y))
    width = 2 * MARGIN + (max(column.values()) + 1) * (BOX_WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + (max(rows.values()) + 1) * (BOX_HEIGHT + GAP_Y) - GAP_Y
    parts = [_line(places[source], places[target]) for source, target in edges]
    parts += [_drawn(box, *places[box]) for box in boxes]
    words = "; ".join(
        f"{name} reads {', '.join(reads) or 'nothing'}" + (f" and writes {writes}" if writes else "")
        for reads, name, writes in flows
    )
    head = Markup(
        '<svg class="flows" role="img" viewBox="0 0 {} {}" width="{}" height="{}" aria-label="{}">'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z"/></marker></defs>'
    ).format(width, height, width, height, words)
    return head + Markup("").join(parts) + Markup("</svg>")


def _columns(boxes: Sequence[_Box], edges: Sequence[tuple[_Box, _Box]]) -> dict[_Box, int]:
    """The column of each box: right of all that leads to it. Boxes that form a circle end somewhere."""
    column = dict.fromkeys(boxes, 0)
    for _ in range(len(boxes)):
        changed = False
        for source, target in edges:
            if column[target] <= column[source] < len(boxes):
                column[target] = column[source] + 1
                changed = True
        if not changed:
            break
    led_to = {target for _, target in edges}
    for box in boxes:
        after = [column[target] for source, target in edges if source == box]
        if box not in led_to and after:  # beside its first reader, so that no line passes behind other boxes
            column[box] = max(0, min(after) - 1)
    kept = {each: index for index, each in enumerate(sorted(set(column.values())))}
    return {box: kept[each] for box, each in column.items()}


def _line(source: tuple[int, int], target: tuple[int, int]) -> Markup:
    x1, y1 = source[0] + BOX_WIDTH, source[1] + BOX_HEIGHT // 2
    x2, y2 = target[0], target[1] + BOX_HEIGHT // 2
    bend = max(20, (x2 - x1) // 2)
    return Markup('<path class="edge" d="M{} {}C{} {} {} {} {} {}" marker-end="url(#arrow)"/>').format(
        x1, y1, x1 + bend, y1, x2 - bend, y2, x2, y2
    )


def _drawn(box: _Box, x: int, y: int) -> Markup:
    text = box.name if len(box.name) <= TEXT_CHARACTERS else box.name[: TEXT_CHARACTERS - 1] + "…"
    return Markup(
        '<g class="{}"><title>{}</title><rect x="{}" y="{}" width="{}" height="{}" rx="{}"/>'
        '<text x="{}" y="{}" text-anchor="middle">{}</text></g>'
    ).format(
        "flow" if box.is_flow else "store",
        escape(box.name),
        x,
        y,
        BOX_WIDTH,
        BOX_HEIGHT,
        BOX_HEIGHT // 2 if box.is_flow else 4,
        x + BOX_WIDTH // 2,
        y + BOX_HEIGHT // 2 + 5,
        text,
    )
