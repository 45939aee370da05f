"""One node of `ottla up --nodes`: `python -m ottla.cli.node.cluster_child 'ottla node 2'`. The argument is for `ps` alone.

The first line of stdin is a JSON object: the node's settings, the log level and the folder for log files. When the node is
ready it prints a line of JSON; if it fails, one with the reason. A thread watches stdin: when the parent is gone, however it
ended, the node shuts down cleanly.

A node that stops prints {"left": true} when its broker has left the cluster, and stays in the quorum until the next line of
stdin: when all nodes stop, each needs a controller to leave, and a controller needs a majority of them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.common.output import print_json
from ottla.cli.logs import configure_logging
from ottla.env.real.child import read_line
from ottla.errors import OttlaError

if TYPE_CHECKING:
    from ottla.broker.node import Node

STOP_S_MAX = 30
"""How long a clean shutdown may take once the parent is gone."""
STAY_S_MAX = 5
"""How long a stopping node stays in the quorum for the others."""


class Release:
    """The parent's word that no other node needs this one in the quorum any more. `give` may be called from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_given = asyncio.Event()

    def give(self) -> None:
        if self._loop is None:
            self._is_given.set()
        else:
            self._loop.call_soon_threadsafe(self._is_given.set)

    async def wait(self, say: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        say()
        try:
            async with asyncio.timeout(STAY_S_MAX):
                await self._is_given.wait()
        except TimeoutError:
            pass


def stop_with_parent(release: Release) -> None:
    """Give `release` with the next line of stdin; when the parent closes it, stop the node."""
    while os.read(0, 4096):
        release.give()
    release.give()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_S_MAX)  # a node that has not stopped by then is ended: nobody else would
    os._exit(1)


def main() -> None:
    gc.disable()  # see `up`
    from ottla.cli.node.process import run_node

    job = json.loads(read_line())
    release = Release()
    threading.Thread(target=stop_with_parent, args=(release,), name="parent-watch", daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets Ctrl-C and stops its nodes
    configure_logging(level=job["level"], directory=None if job["log_dir"] is None else Path(job["log_dir"]))

    def tell(node: Node) -> None:
        node.stay_in_quorum = lambda: release.wait(lambda: print_json({"left": True}))
        print_json({"bootstrap_servers": node.bootstrap_servers, "cluster_id": node.cluster_id})

    try:
        run_node(job["settings"], tell)
    except OttlaError as failure:
        print_json({"error": str(failure)})
        sys.exit(1)


if __name__ == "__main__":
    main()
