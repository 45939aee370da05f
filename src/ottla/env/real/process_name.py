"""The name of this process, as `ps` and `top` show it."""

from __future__ import annotations

from contextlib import suppress


def name_process(name: str) -> None:
    """Set the name: at most 15 bytes are kept. Only on Linux; elsewhere it stays as it was."""
    with suppress(OSError), open("/proc/self/comm", "w", encoding="utf-8") as comm:
        comm.write(name)
