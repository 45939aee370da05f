"""The group records in the __consumer_offsets of a log directory, in a form that can be compared between servers."""

from pathlib import Path
from typing import Any

from tests.support.logs.log_reading import whole_batches

from ottla.ids import Uuid
from ottla.records.reader import read_records
from ottla.wire.base import Struct
from ottla.wire.log_records import InternalLog, decode_coordinator_key, decode_coordinator_value

TIMES = {"assignment_timestamp", "timestamp", "commit_timestamp", "current_state_timestamp"}


def group_records(data_dir: Path, group_id: str) -> list[tuple[Any, Any]]:
    """Keys and values (None: a tombstone) of one group's records, in the order of the log."""
    found = []
    for segment in sorted(data_dir.glob("__consumer_offsets-0/*.log")):
        for batch in whole_batches(segment.read_bytes()):
            for record in read_records(batch):
                if record.key is None or batch.is_control:
                    continue
                key = decode_coordinator_key(InternalLog.GROUPS, bytes(record.key))
                if group_id not in (getattr(key, "group_id", None), getattr(key, "group", None)):
                    continue
                value = None if record.value is None else decode_coordinator_value(InternalLog.GROUPS, key, bytes(record.value))
                found.append((key, None if value is None else value.message))
    return found


def plain(value: Any, names: dict[Uuid, str]) -> Any:
    """A message as plain data: topics by name, no times, no hash (it depends on the topic ids)."""
    if isinstance(value, bytes | bytearray | memoryview):
        return names.get(Uuid(bytes(value)), bytes(value).hex())
    if isinstance(value, list):
        found = [plain(each, names) for each in value]
        return sorted(found, key=repr) if found and isinstance(value[0], Struct) else found  # Java's maps have no order
    if isinstance(value, Struct):
        fields = {name: plain(getattr(value, name), names) for name in value.__slots__}
        return (type(value).__name__, {name: "a time" if name in TIMES else each for name, each in fields.items()})
    return value
