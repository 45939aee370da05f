"""Rows of the small files: producer snapshots, checkpoints, JSON and properties files.

Damage is raised as `CorruptFile`; `kinds.py` turns it into a row.
"""

import json

from ottla.cli.dump_log.rows import Kind, Row, Rows, problem
from ottla.env import Disk
from ottla.log.directories.checkpoint import parse_epochs, parse_offsets
from ottla.log.producers.producer_snapshot import decode_snapshot


def dump_producer_snapshot(disk: Disk, path: str) -> Rows:
    """The state of each producer at the snapshot's offset."""
    for entry in decode_snapshot(path, disk.read_file(path)):
        fields: dict[str, object] = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.transaction_first_offset,
            "lastTimestamp": entry.last_timestamp_ms,
        }
        for batch in entry.batches:
            fields |= {
                "firstSequence": batch.first_sequence,
                "lastSequence": batch.last_sequence,
                "lastOffset": batch.last_offset,
                "offsetDelta": batch.last_offset - batch.first_offset,
                "timestamp": batch.timestamp_ms,
            }
        yield Row(Kind.PRODUCER, fields)


def dump_offset_checkpoint(disk: Disk, path: str) -> Rows:
    """One offset per partition."""
    for partition, offset in parse_offsets(path, disk.read_file(path)).items():
        yield Row(Kind.CHECKPOINT_ENTRY, {"topic": partition.topic, "partition": partition.partition, "offset": offset})


def dump_leader_epochs(disk: Disk, path: str) -> Rows:
    """Where each leader epoch begins."""
    for epoch, start_offset in parse_epochs(path, disk.read_file(path)):
        yield Row(Kind.LEADER_EPOCH, {"epoch": epoch, "startOffset": start_offset})


def dump_json(disk: Disk, path: str) -> Rows:
    """A file that holds one JSON object: quorum-state, the clean-shutdown marker."""
    try:
        content = json.loads(disk.read_file(path))
    except ValueError as damage:
        yield problem(f"{path} is not JSON: {damage}")
        return
    if isinstance(content, dict):
        yield Row(Kind.PROPERTIES, content)
    else:
        yield problem(f"{path} should hold one JSON object, not {type(content).__name__}")


def dump_properties(disk: Disk, path: str) -> Rows:
    """A file of `name=value` or `name: value` lines: meta.properties, partition.metadata."""
    fields: dict[str, object] = {}
    for number, line in enumerate(disk.read_file(path).decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip() or line.startswith(("#", "!")):
            continue
        at = min((position for position in (line.find("="), line.find(":")) if position > 0), default=-1)
        if at < 0:
            yield problem(f"{path} line {number} should be a name and a value, not {line[:60]!r}")
            continue
        fields[line[:at].strip()] = line[at + 1 :].strip()
    yield Row(Kind.PROPERTIES, fields)
