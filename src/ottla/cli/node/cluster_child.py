"""One node of `ottla up --nodes`: `python -m ottla.cli.node.cluster_child`.

The first line of stdin is a JSON object: the node's settings, the log level and the folder for log files. When the node is
ready it prints a line of JSON; if it fails, one with the reason. A thread watches stdin: when the parent is gone, however it
ended, the node shuts down cleanly.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.node import Node

STOP_S_MAX = 30
"""How long a clean shutdown may take once the parent is gone."""


def stop_with_parent() -> None:
    """Block until the parent closes our stdin, then stop the node."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_S_MAX)
    os._exit(1)


def main() -> None:
    gc.disable()  # see `up`
    from ottla.cli.common.output import print_json
    from ottla.cli.logs import configure_logging
    from ottla.cli.node.running import run_node
    from ottla.env.real.child import read_line
    from ottla.errors import OttlaError

    job = json.loads(read_line())
    threading.Thread(target=stop_with_parent, name="parent-watch", daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets Ctrl-C and stops its nodes
    configure_logging(level=job["level"], directory=None if job["log_dir"] is None else Path(job["log_dir"]))

    def tell(node: Node) -> None:
        print_json({"bootstrap_servers": node.bootstrap_servers, "cluster_id": node.cluster_id})

    try:
        run_node(job["settings"], tell)
    except OttlaError as failure:
        print_json({"error": str(failure)})
        sys.exit(1)


if __name__ == "__main__":
    main()
