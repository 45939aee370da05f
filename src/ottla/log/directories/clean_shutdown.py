"""`.kafka_cleanshutdown`: the sign that a log directory was closed in good order, so that its logs need no recovery.

JSON: `{"version":0,"brokerEpoch":14}`. Written as the very last thing, after every log and checkpoint is durable; removed
before the first log is opened, so that a crash while opening is not taken for an orderly end. That the file is there is what
counts: one whose text is damaged still says "closed in good order", only the epoch is then unknown.
"""

import json
from typing import NamedTuple

from ottla.env import Disk
from ottla.log.names import CLEAN_SHUTDOWN

VERSION = 0


class CleanShutdown(NamedTuple):
    """How a directory was left."""

    broker_epoch: int | None
    """The epoch in which the broker ended, by which the controller knows that nothing was lost; None if not told."""


def format_clean_shutdown(broker_epoch: int) -> bytes:
    """The bytes of the file."""
    return json.dumps({"version": VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def parse_clean_shutdown(data: bytes) -> CleanShutdown:
    """What the file says. Whatever its bytes, there is an answer."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return CleanShutdown(None)
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    return CleanShutdown(epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None)


def read_clean_shutdown(disk: Disk, directory: str) -> CleanShutdown | None:
    """How the directory was left; None after a crash, or at the first start."""
    try:
        return parse_clean_shutdown(disk.read_file(f"{directory}/{CLEAN_SHUTDOWN}"))
    except FileNotFoundError:
        return None


async def remove_clean_shutdown(disk: Disk, directory: str) -> None:
    """Forget the orderly end, durably: from now on a crash is a crash."""
    await disk.remove(f"{directory}/{CLEAN_SHUTDOWN}")
    await disk.sync_directory(directory)


async def write_clean_shutdown(disk: Disk, directory: str, broker_epoch: int) -> None:
    """Say that everything in the directory is durable. The last write before the lock is given back."""
    await disk.replace_file(f"{directory}/{CLEAN_SHUTDOWN}", format_clean_shutdown(broker_epoch))
