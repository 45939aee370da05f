"""`.kafka_cleanshutdown`: the file that marks a clean shutdown of a log directory, after which its logs need no recovery.

JSON: `{"version":0,"brokerEpoch":14}`. Written last, after every log and checkpoint is durable. Removed before the first log is
opened, so that a crash while opening is not taken for a clean shutdown. Only its existence counts: with damaged text the
shutdown is still clean, but the epoch is unknown.
"""

import json
from typing import NamedTuple

from ottla.env import SMALL_FILE_BYTES_MAX, Disk
from ottla.errors import CorruptFile
from ottla.log.names import CLEAN_SHUTDOWN

VERSION = 0


class CleanShutdown(NamedTuple):
    """The content of the file."""

    broker_epoch: int | None
    """The broker's epoch at its shutdown, which proves to the controller that nothing was lost; None if unknown."""


def format_clean_shutdown(broker_epoch: int) -> bytes:
    """The bytes of the file."""
    return json.dumps({"version": VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def parse_clean_shutdown(data: bytes) -> CleanShutdown:
    """Parse the file. Damaged bytes give an unknown epoch, never an error."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return CleanShutdown(None)
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    return CleanShutdown(epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None)


def read_clean_shutdown(disk: Disk, directory: str) -> CleanShutdown | None:
    """The clean shutdown file of the directory; None after a crash, or at the first start."""
    try:
        return parse_clean_shutdown(disk.read_file(f"{directory}/{CLEAN_SHUTDOWN}", SMALL_FILE_BYTES_MAX))
    except FileNotFoundError:
        return None
    except CorruptFile:
        return CleanShutdown(None)


async def remove_clean_shutdown(disk: Disk, directory: str) -> None:
    """Remove the file, durably: from now on a crash needs recovery."""
    await disk.remove(f"{directory}/{CLEAN_SHUTDOWN}")
    await disk.sync_directory(directory)


async def write_clean_shutdown(disk: Disk, directory: str, broker_epoch: int) -> None:
    """Write the file, when everything else in the directory is durable. The last write before the lock is released."""
    await disk.replace_file(f"{directory}/{CLEAN_SHUTDOWN}", format_clean_shutdown(broker_epoch))
