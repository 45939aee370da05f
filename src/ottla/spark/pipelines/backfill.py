"""Backfills: a range of topics is read again and written to the same sinks, beside the pipeline's own progress.

A backfill has an id, made of its range and flows, and checkpoints of its own under it. So the same command finds what it has
done: it goes on where it was cut off, and writes nothing when it was complete. Exactly-once sinks know its batches by these
checkpoints. The offsets are looked up once and kept in `range.json`: a range that ends at `latest` stays as it was.

Only flows from the topics of `ottla.yml` into sinks can be filled. A table of files lists its batches by number, so batches of
another query would be taken for written, and their rows lost.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ottla import TopicPartition
from ottla.spark.pipelines import graph as graphs
from ottla.spark.pipelines import storage
from ottla.spark.pipelines.connections import with_address
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.outline import explain_text
from ottla.spark.pipelines.resolution import Resolved
from ottla.spark.pipelines.spec import Connection, Spec
from ottla.spark.source import lookup
from ottla.spark.source.lookup import find_partitions
from ottla.spark.source.offsets import Offsets, Where, from_json, to_json
from ottla.spark.source.options import source_options

ENDING = "backfillEndingOffsets"
_SECTION = re.compile(r"== Analyzed Logical Plan ==\n(.*?)(?:\n== |\Z)", re.DOTALL)


@dataclass(frozen=True)
class Range:
    """The offsets of one source: from, and to before."""

    begins: Offsets
    ends: Offsets

    @property
    def records(self) -> int:
        """How many offsets there are in it."""
        return sum(self.ends[each] - begin for each, begin in self.begins.items())


def backfill_id(begin: Where, end: Where, flows: Iterable[str]) -> str:
    """The same for the same range and flows."""
    return hashlib.sha256(repr((_canonical(begin), _canonical(end), sorted(flows))).encode()).hexdigest()[:12]


def _canonical(where: Where) -> object:
    return where.everywhere, where.time_ms, None if where.offsets is None else sorted(where.offsets.items())


def ranges_of(spec: Spec, begin: Where, end: Where) -> dict[str, Range]:
    """The range of each source: what an earlier attempt has looked up, or what the brokers say now."""
    if begin.time_ms is not None and end.time_ms is not None and begin.time_ms >= end.time_ms:
        raise PipelineError(
            "--from is not before --to: the range has no records. Swap them (a time such as 3h is that long ago)"
        )
    files, path = storage.needed(spec, "the range of a backfill must be kept"), f"{spec.home}/range.json"
    if (text := files.read(path)) is not None:
        kept = json.loads(text)
        return {name: Range(from_json(each["from"]), from_json(each["to"])) for name, each in kept.items()}
    found = {each.name: _range(each, spec, begin, end) for each in spec.sources if is_filled(each)}
    if not found:
        raise PipelineError("the pipeline has no source of topics in ottla.yml: there is nothing to fill")
    kept = {name: {"from": to_json(each.begins), "to": to_json(each.ends)} for name, each in found.items()}
    files.write(path, json.dumps(kept))
    return found


def is_filled(source: Connection) -> bool:
    """Whether a source is a stream of topics."""
    return source.format == "ottla" and source.is_streaming


def _range(source: Connection, spec: Spec, begin: Where, end: Where) -> Range:
    options = source_options(with_address(source, spec), is_streaming=True)
    partitions = find_partitions(options).partitions
    last = lookup.end_offsets(options, partitions)
    wanted = [each for each in partitions if all(_names(where, each) for where in (begin, end))]
    begins = dict(last) | lookup.find_offsets(options, _only(begin, wanted), wanted)
    ends = dict(last) | lookup.find_offsets(options, _only(end, wanted), wanted)
    for each in wanted:
        if ends[each] > last[each]:
            raise PipelineError(f"--to is {ends[each]} for {each}, which ends at offset {last[each]}: give that or less")
        if begins[each] > ends[each]:
            raise PipelineError(f"--from is after --to in {each}: it would read from {begins[each]} to {ends[each]}")
    return Range(begins, ends)


def _names(where: Where, each: TopicPartition) -> bool:
    return where.offsets is None or each in where.offsets


def _only(where: Where, wanted: list[TopicPartition]) -> Where:
    if where.offsets is None:
        return where
    return replace(where, offsets={each: where.offsets[each] for each in wanted})


def with_ranges(spec: Spec, ranges: dict[str, Range]) -> Spec:
    """The pipeline with sources that begin and end there. It shows its progress in no group: that is the pipeline's own."""

    def bounded(source: Connection) -> Connection:
        if source.name not in ranges:
            return source
        kept = {key: value for key, value in source.options.items() if not key.lower().startswith("starting")}
        found = ranges[source.name]
        bounds = {"startingOffsets": json.dumps(to_json(found.begins)), ENDING: json.dumps(to_json(found.ends))}
        return replace(source, options=kept | bounds)

    return replace(spec, sources=tuple(map(bounded, spec.sources)), group=None)


def chosen(resolved: Resolved, flows: tuple[str, ...]) -> tuple[Resolved, list[str]]:
    """The pipeline with the flows to fill only, and sentences about those that are left out; raises for one that was named."""
    graph, left_out = resolved.graph, []
    for name in flows:
        if name not in resolved.frames:
            there = ", ".join(each.name for each in graph.running_flows())
            raise PipelineError(f"the pipeline has no flow {name}; there are {there}")
    frames: dict[str, Any] = {}
    for flow in graph.running_flows():
        if flows and flow.name not in flows:
            continue
        reason = _why_not(graph.outputs[flow.target], resolved.frames[flow.name])
        if reason is None:
            frames[flow.name] = resolved.frames[flow.name]
        elif flows:
            raise PipelineError(f"the flow {flow.name} cannot be filled: {reason}")
        else:
            left_out.append(f"the flow {flow.name} is left out: {reason}")
    if not frames:
        raise PipelineError("; ".join(left_out) or "there is no flow to fill")
    return replace(resolved, frames=frames), left_out


def _why_not(output: graphs.Output, frame: Any) -> str | None:
    if output.kind == graphs.VIEW:
        return f"the next run computes {output.name} again"
    if output.kind != graphs.SINK or ("path" in output.options and output.format != "ottla_delta"):
        return f"{output.name} is a table of files, whose rows only --reset computes again"
    text = explain_text(frame)
    section = _SECTION.search(text)
    plan = (section[1] if section else text).lower()
    streams = plan.count("streamingrelation")
    if not streams or plan.count(f"{ENDING.lower()}=") < streams:
        return "it reads a stream that is no source of topics in ottla.yml, so it has no such range"
    return None
