"""Completes or undoes what a killed process left in a partition's folder. Runs before anything is loaded.

.deleted   a delayed removal: removed now (not a metadata snapshot's `.checkpoint.deleted`)
.cleaned   an unfinished compaction: removed, and with it every `.swap` from the same offset on, since a
           replacement renames its highest segment first
.swap      a replacement past the point of no return: the segments it replaces are removed, then it gets their names
.tmp       a checkpoint half written: removed
an index without a log file: removed
"""

from collections.abc import Iterable

from ottla.config.topic import LogConfig
from ottla.env import Disk
from ottla.log.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    SegmentFileName,
    parse_segment_file_name,
    segment_file_name,
)
from ottla.log.segments.segment import Segment

METADATA_SNAPSHOT_DELETED = ".checkpoint.deleted"
DRAFT_SUFFIX = ".tmp"


def needs_repair(names: Iterable[str]) -> bool:
    """Whether a folder with these files has leftovers. False for every folder that no kill has interrupted."""
    logs, others = set(), set()
    for name in names:
        if name.endswith((DELETED_SUFFIX, DRAFT_SUFFIX)):
            return True
        if (meaning := parse_segment_file_name(name)) is None:
            continue
        if meaning.state:
            return True
        if meaning.suffix == LOG_SUFFIX:
            logs.add(meaning.base_offset)
        elif meaning.suffix != SNAPSHOT_SUFFIX:
            others.add(meaning.base_offset)
    return not others <= logs


async def repair_folder(disk: Disk, folder: str, config: LogConfig, now_ms: int) -> list[str]:
    """Bring the folder's files into a state that can be loaded; returns what was done, as sentences."""
    notes: list[str] = []
    await _remove_leftovers(disk, folder, notes)
    await _finish_swaps(disk, folder, config, now_ms, notes)
    await _remove_orphans(disk, folder, notes)
    if notes:
        await disk.sync_directory(folder)
    return notes


def _segment_files(disk: Disk, folder: str) -> list[tuple[str, SegmentFileName]]:
    parsed = ((name, parse_segment_file_name(name)) for name in disk.list_directory(folder))
    return [(name, meaning) for name, meaning in parsed if meaning is not None]


async def _remove_leftovers(disk: Disk, folder: str, notes: list[str]) -> None:
    doomed: list[tuple[str, str]] = []
    for name in disk.list_directory(folder):
        if name.endswith(DELETED_SUFFIX) and not name.endswith(METADATA_SNAPSHOT_DELETED):
            doomed.append((name, "its segment was deleted before the restart"))
        elif name.endswith(DRAFT_SUFFIX):
            doomed.append((name, "it was never finished"))
    files = _segment_files(disk, folder)
    cleaned = [meaning.base_offset for _, meaning in files if meaning.state == CLEANED_SUFFIX]
    for name, meaning in files:
        if meaning.state == CLEANED_SUFFIX or (
            meaning.state == SWAP_SUFFIX and cleaned and meaning.base_offset >= min(cleaned)
        ):
            doomed.append((name, "the compaction that wrote it was interrupted"))
    for name, why in doomed:
        await disk.remove(f"{folder}/{name}")
        notes.append(f"removed {name}: {why}")


async def _finish_swaps(disk: Disk, folder: str, config: LogConfig, now_ms: int, notes: list[str]) -> None:
    files = _segment_files(disk, folder)
    swaps = [(name, meaning) for name, meaning in files if meaning.state == SWAP_SUFFIX]
    logs = [meaning.base_offset for _, meaning in swaps if meaning.suffix == LOG_SUFFIX]
    if logs:
        first, end = min(logs), max(_swap_end(disk, folder, base, config, now_ms) for base in logs)
        for name, meaning in files:
            replaced = meaning.state == "" and first <= meaning.base_offset < max(end, first + 1)
            if replaced and (meaning.suffix != SNAPSHOT_SUFFIX or meaning.base_offset not in logs):
                await disk.remove(f"{folder}/{name}")
                notes.append(f"removed {name}: compaction has replaced it")
        await disk.sync_directory(folder)
        swaps = [(name, meaning) for name, meaning in _segment_files(disk, folder) if meaning.state == SWAP_SUFFIX]
    for name, _ in sorted(swaps, key=lambda swap: swap[1].suffix == LOG_SUFFIX):
        # The log file last: while it has its `.swap`, the next start knows that the replacement is unfinished.
        await disk.rename(f"{folder}/{name}", f"{folder}/{name.removesuffix(SWAP_SUFFIX)}")
        notes.append(f"renamed {name}: compaction was interrupted after it had been decided")


def _swap_end(disk: Disk, folder: str, base_offset: int, config: LogConfig, now_ms: int) -> int:
    segment = Segment(disk, folder, base_offset, config, now_ms=now_ms, state=SWAP_SUFFIX)
    try:
        return segment.next_offset()
    finally:
        segment.abandon()


async def _remove_orphans(disk: Disk, folder: str, notes: list[str]) -> None:
    files = _segment_files(disk, folder)
    logs = {meaning.base_offset for _, meaning in files if meaning.suffix == LOG_SUFFIX and not meaning.state}
    for name, meaning in files:
        if meaning.suffix not in (LOG_SUFFIX, SNAPSHOT_SUFFIX) and not meaning.state and meaning.base_offset not in logs:
            await disk.remove(f"{folder}/{name}")
            notes.append(f"removed {name}: there is no {segment_file_name(meaning.base_offset, LOG_SUFFIX)}")
