"""Shell scripts as documents and comments show them, with `ottla` in their path, and ports for the nodes that they start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.support.servers.kafka_server import HANG_S, free_ports


@contextmanager
def running_script(script: str, folder: Path) -> Iterator[None]:
    """Run a shell script, with `ottla` in its path, in a process group of its own."""
    program = folder / "bin" / "ottla"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla.cli.main "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    with open(folder / "script.log", "wb") as log:
        process = subprocess.Popen(
            ["sh", "-ec", script], cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield
    except BaseException:
        print((folder / "script.log").read_text())
        raise
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(HANG_S)


def ports_for_nodes(nodes: int) -> int:
    """A port with free ones behind it, for brokers, and for the controllers of several 10000 above."""
    while True:
        (port,) = free_ports(1)
        wanted = [port, port + 1] if nodes == 1 else [port + each + above for each in range(nodes) for above in (0, 10_000)]
        if max(wanted) < 65_536 and port <= 55_000 and all(map(_is_free, wanted)):
            return port


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
