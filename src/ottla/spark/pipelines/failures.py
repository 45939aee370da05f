"""From the pages that Spark writes when a query breaks to one sentence: which flow, which records, why. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

from ottla.spark.pipelines.errors import FlowFailed

_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(.*?)(?=\n\S*\s*SQLSTATE|\n\n|\n\tat |\Z)", re.DOTALL)
_OUR_ERROR = re.compile(r"^ottla\.[\w.]+: ")
"""Our own errors are sentences: their class says nothing more."""
_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)', re.MULTILINE)
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]\s*")
_OUTER = ("STREAM_FAILED", "PYTHON_EXCEPTION", "PYTHON_DATA_SOURCE_ERROR", "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR")
"""Conditions that say only that something inside failed."""


_CHECKPOINT = re.compile(
    r"STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE|STATE_STORE_SCHEMA|STREAMING_STATEFUL_OPERATOR_NOT_MATCH"
    r"|CANNOT_LOAD_STATE_STORE|sources in the checkpoint offsets|STATE_STORE_UNSUPPORTED|STREAMING_CHECKPOINT_MISSING"
)
"""What Spark says when a query has changed so that it cannot continue from its checkpoint."""


def flow_failed(flow: str, error: Any, folder: str = "") -> FlowFailed:
    """The error of a flow, from the exception of its query."""
    text = str(error)
    if _CHECKPOINT.search(text.partition("=== Streaming Query ===")[0]) is not None:
        sentence = (
            f"the flow {flow} cannot continue from its checkpoint, because its query has changed: other keys, aggregates or "
            f"sources. Take the change back, or read everything again with --reset {flow}. Spark says: {reason(text, folder)}"
        )
        return FlowFailed(flow, sentence, text)
    where = unread_offsets(text)
    return FlowFailed(flow, f"the flow {flow} broke{f' at {where}' if where else ''}: {reason(text, folder)}", text)


def reason(text: str, folder: str = "") -> str:
    """Why a query broke: the last line of Python's innermost traceback with the user's line, or Spark's own sentence."""
    head = text.partition("=== Streaming Query ===")[0]
    traces = list(_TRACEBACK.finditer(head))
    if traces:
        trace = traces[-1][1]
        last = [line for line in trace.splitlines() if line and not line.startswith(" ")]
        if last:
            return _OUR_ERROR.sub("", _shorten(" ".join(last))) + _line_of(trace, folder)
    inner = head.strip()
    while True:
        found = _CONDITION.search(inner)
        if found is None:
            break
        rest = inner[found.end() :]
        if found[1] not in _OUTER and not found[1].startswith(_OUTER):
            return _shorten(re.split(r"\s*SQLSTATE:", rest)[0])
        inner = rest
    return _shorten(re.split(r"\s*SQLSTATE:|\n", inner.strip())[0] or "Spark gives no reason")


def _shorten(text: str, length_max: int = 400) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length_max else f"{line[: length_max - 1]}…"


def _line_of(trace: str, folder: str) -> str:
    """The last line of the user's own files in a traceback."""
    frames = [(name, line) for name, line in _FRAME.findall(trace) if folder and name.startswith(folder)]
    if not frames:
        return ""
    name, line = frames[-1]
    return f" ({name.removeprefix(folder).lstrip('/')} line {line})"


def unread_offsets(text: str) -> str:
    """The records of the batch that broke, such as `orders-0 offsets 5 to 9`."""
    committed, available = (
        _offsets_after(text, "Current Committed Offsets:"),
        _offsets_after(text, "Current Available Offsets:"),
    )
    found = []
    for (topic, part), end in sorted(available.items()):
        start = committed.get((topic, part), 0)
        if end > start:
            found.append(
                f"{topic}-{part} offset {start}" if end == start + 1 else f"{topic}-{part} offsets {start} to {end - 1}"
            )
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more partitions" if len(found) > 3 else "")


def _offsets_after(text: str, label: str) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    line = next((each for each in text.splitlines() if each.startswith(label)), "")
    decoder = json.JSONDecoder()
    position = line.find(": {", len(label))
    while position >= 0:
        try:
            parsed, _ = decoder.raw_decode(line[position + 2 :])
        except ValueError:
            parsed = None
        if isinstance(parsed, dict):
            for topic, parts in parsed.items():
                if isinstance(parts, dict):
                    found |= {(topic, part): int(each) for part, each in parts.items()}
        position = line.find(": {", position + 3)
    return found
