"""From the pages that Spark writes when a query breaks to one sentence: which flow, which records, why. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

from ottla.errors.texts import counted
from ottla.spark.pipelines.errors import FlowFailed

_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(.*?)(?=\n\S*\s*SQLSTATE|\n\n|\n\tat |\Z)", re.DOTALL)
_OUR_ERROR = re.compile(r"^ottla\.[\w.]+: ")
"""Our own errors are sentences: their class says nothing more."""
_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)', re.MULTILINE)
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]\s*")
_OUTER = ("STREAM_FAILED", "PYTHON_EXCEPTION", "PYTHON_DATA_SOURCE_ERROR", "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR")
"""Conditions that say only that something inside failed."""
_CALL = re.compile(r"^Failed when Python (?:streaming )?data source perform \w+: (?:ottla\.[\w.]+: )?")


_OPERATORS = {
    "stateStoreSave": "an aggregation",
    "sessionWindowStateStoreSaveExec": "session windows",
    "dedupe": "dropDuplicates",
    "dedupeWithinWatermark": "dropDuplicatesWithinWatermark",
    "symmetricHashJoin": "a join of streams",
    "globalLimit": "a limit",
}
"""Spark's names of the parts of a query that keep state."""
_OPERATOR = re.compile(r"OperatorName: (\w+)")
_FIELD = re.compile(r"StructField\((\w+),(\w+?)(?:Type)?(?:\([^)]*\))?,")
_SCHEMAS = re.compile(
    r"Existing (?:key|value)_schema=(.*?) and new (?:key|value)_schema=(.*?)\.\s+If you"
    r"|new value_schema=(.*?) and old value_schema=(.*?)\s+Please",
    re.DOTALL,
)
_CONFLICTS: tuple[tuple[str, str], ...] = (
    (r"STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "the columns by which it groups, joins or deduplicates have changed{schemas}"),
    (
        (
            r"STATE_STORE_(?:VALUE_SCHEMA_NOT_COMPATIBLE|INVALID_VALUE_SCHEMA_EVOLUTION|COLUMN_FAMILY_SCHEMA_INCOMPATIBLE|"
            r"INVALID_VARIABLE_TYPE_CHANGE|STATE_SCHEMA_FILES_THRESHOLD_EXCEEDED|VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED)"
        ),
        "what it keeps for each key, such as its aggregates, has changed{schemas}",
    ),
    (r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA", "it had {operators_before} and now has {operators}"),
    (
        r"STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
        "it now has {operators}, and its checkpoint has no state: there was no such operator before, or the state was deleted",
    ),
    (r"There are \[(\d+)\] sources in the checkpoint offsets and now there are \[(\d+)\]", "{sources}"),
    (
        r'has the offset of another source|For input string: "\{|No usable value for logOffset|Expected e\.g\. \{"topicA',
        "it reads another kind of source than before",
    ),
    (
        (
            r"STATE_STORE_INVALID_CONFIG_AFTER_RESTART|INCOMPATIBLE_STATE_STORE_CONFIGS|CANNOT_ENABLE_ON_EXISTING_CHECKPOINT"
            r"|CHECKPOINT_FORMAT_V1_NOT_SUPPORTED|STATE_STORE_CHECKPOINT_IDS_NOT_SUPPORTED"
        ),
        "a setting has changed that must stay as it is: {reason}",
    ),
    (
        r"(?:KEY|VALUE)_ROW_FORMAT_VALIDATION_FAILURE",
        "its query has changed, or the state was written by another version of Spark",
    ),
)
"""What Spark says when a query has changed so that it cannot continue from its checkpoint, and what that means."""
_DAMAGED = re.compile(
    r"MALFORMED_LOG_FILE|CHECKSUM_VERIFICATION_FAILED|STREAMING_CHECKPOINT_MISSING_METADATA_FILE|STATE_STORE_BASE_CHECKPOINT_ID"
    r"|STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY|BATCH_METADATA_NOT_FOUND|Incomplete log file|STDS_FAILED_TO_READ_STATE_SCHEMA"
    r"|batch \d+ doesn't exist|INVALID_LOG_VERSION|UnsupportedLogVersion"
    r"|CANNOT_LOAD_STATE_STORE\.(?:CANNOT_|INVALID_|UNEXPECTED_|AUTO_SNAPSHOT|SNAPSHOT_PARTITION|UNCATEGORIZED)"
)
"""Files of a checkpoint that are missing or broken. Memory that runs out while state is loaded is not among them."""
_OTHER_TOPICS = re.compile(r"was read before and is gone")


def flow_failed(flow: str, error: Any, folder: str = "") -> FlowFailed:
    """The error of a flow, from the exception of its query."""
    text = str(error)
    head = text.partition("=== Streaming Query ===")[0]
    why = _conflict(head, folder)
    if why is not None:
        sentence = (
            f"the flow {flow} cannot continue from its checkpoint: {why}. Take the change back, or read everything again with "
            f"--reset {flow}"
        )
        return FlowFailed(flow, sentence, text)
    if _DAMAGED.search(head) is not None:
        sentence = (
            f"the flow {flow} cannot continue: files of its checkpoint are missing or damaged. Put them back, or read "
            f"everything again with --reset {flow}. Spark says: {reason(text, folder)}"
        )
        return FlowFailed(flow, sentence, text)
    where = unread_offsets(text)
    said = reason(text, folder)
    if _OTHER_TOPICS.search(head) is not None:
        said += f". If the flow is to read other topics from now on, start it over with --reset {flow}"
    return FlowFailed(flow, f"the flow {flow} broke{f' at {where}' if where else ''}: {said}", text)


def _conflict(head: str, folder: str) -> str | None:
    """How a query does not fit its checkpoint; None if that is not why it broke."""
    for pattern, words in _CONFLICTS:
        found = re.search(pattern, head)
        if found is None:
            continue
        before, now = (_operators(head, label) for label in ("in the metadata: ", "in current batch: "))
        sources = ""
        if found.re.groups:
            old, new = (counted(int(each), "source") for each in found.groups())
            sources = f"it read {old} and now reads {new}"
        why = "" if "{reason}" not in words else reason(head, folder)
        return words.format(operators_before=before, operators=now, schemas=_schemas(head), sources=sources, reason=why)
    return None


def _operators(head: str, label: str) -> str:
    listed = head.partition(label)[2].partition("]")[0]
    names = [_OPERATORS.get(each, each) for each in _OPERATOR.findall(listed)]
    return " and ".join(names) or "none"


def _schemas(head: str) -> str:
    """`, from (k string) to (k int)`, of a condition about the schema of state."""
    found = _SCHEMAS.search(head)
    if found is None:
        return ""
    old, new = (found[1], found[2]) if found[1] is not None else (found[4], found[3])
    texts = [", ".join(f"{name} {kind.lower()}" for name, kind in _FIELD.findall(each)) for each in (old, new)]
    return f", from ({texts[0]}) to ({texts[1]})" if all(texts) and texts[0] != texts[1] else ""


def reason(text: str, folder: str = "") -> str:
    """Why a query broke: the last line of Python's innermost traceback with the user's line, or Spark's own sentence."""
    head = text.partition("=== Streaming Query ===")[0]
    traces = list(_TRACEBACK.finditer(head))
    if traces:
        trace = traces[-1][1]
        last = [line for line in trace.splitlines() if line and not line.startswith(" ")]
        if last and "Py4JJavaError" in last[0]:
            head = trace  # Java's error inside of a foreachBatch
        elif last:
            return _OUR_ERROR.sub("", _shorten(_without_stop(" ".join(last)))) + _line_of(trace, folder)
    inner = head.strip()
    while True:
        found = _CONDITION.search(inner)
        if found is None:
            break
        rest = inner[found.end() :]
        if found[1] not in _OUTER and not found[1].startswith(_OUTER):
            return _shorten(_without_stop(re.split(r"\s*SQLSTATE:", rest)[0]))
        inner = rest
    return _shorten(_CALL.sub("", _without_stop(re.split(r"\s*SQLSTATE:|\n", inner.strip())[0])) or "Spark gives no reason")


def _without_stop(text: str) -> str:
    """Our sentence goes on after Spark's."""
    return text.rstrip(" .")


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
