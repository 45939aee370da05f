"""Checks that the metadata log is whole after a clean shutdown.

After a crash, recovery cuts off a torn end: it was not acknowledged. After a clean shutdown everything was synced, so damage
means that acknowledged changes are lost, and topics with them. The operator has to decide then, and the node does not start.
Only reads; leaves the files as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.env import Disk, OpenMode
from ottla.errors import CorruptFile, CorruptRecords
from ottla.log.directories.clean_shutdown import read_clean_shutdown
from ottla.log.names import CLEAN_SHUTDOWN, LOG_SUFFIX, parse_segment_file_name, segment_file_name
from ottla.log.segments.scan import checked_batches


def check_after_clean_stop(disk: Disk, directory: str, folder: str, snapshot_offset: int) -> None:
    """Raise `CorruptFile` if the shutdown was clean and the log in `folder` is not whole from its snapshot on."""
    if read_clean_shutdown(disk, directory) is None:
        return
    remedy = (
        "Restore the folder from a copy; or, if the changes from there on may be lost, remove "
        f"{directory}/{CLEAN_SHUTDOWN} and start again"
    )
    is_empty = snapshot_offset == 0
    for path in _segments_from(disk, folder, snapshot_offset):
        file = disk.open(path, OpenMode.READ)
        try:
            for _ in checked_batches(file, 0, file.size):
                is_empty = False
        except CorruptRecords as damage:
            raise CorruptFile(
                path,
                damage.position,
                f"the node was shut down cleanly, but its metadata log is damaged here: {damage}",
                remedy,
            ) from None
        finally:
            file.close()
    if is_empty:
        raise CorruptFile(
            folder,
            0,
            "the node was shut down cleanly, but its metadata log is empty: all topics would be lost",
            remedy,
        )


def _segments_from(disk: Disk, folder: str, offset: int) -> Iterator[str]:
    """The log files that have records at or after `offset`, in order."""
    parsed = (parse_segment_file_name(name) for name in disk.list_directory(folder))
    bases = sorted(each.base_offset for each in parsed if each is not None and each.suffix == LOG_SUFFIX and not each.state)
    first = max((base for base in bases if base <= offset), default=0)
    return (f"{folder}/{segment_file_name(base, LOG_SUFFIX)}" for base in bases if base >= first)
