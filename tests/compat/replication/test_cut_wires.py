"""Nodes in network namespaces whose packets are dropped: `cut_wires.py` runs as a process in a namespace of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.servers.wires import DIRECTIONS, UNSHARE, why_not

pytestmark = pytest.mark.slow

RUN_S = 1700


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("role", ["leader", "follower"])
def test_dropped_packets_lose_no_acknowledged_record(role: str, tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    program = [sys.executable, "-m", "tests.compat.replication.cut_wires", role, str(tmp_path)]
    done = subprocess.run([*UNSHARE, "--kill-child", *program], capture_output=True, text=True, check=False, timeout=RUN_S)
    print(done.stdout)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert sum(line.startswith(role) for line in done.stdout.splitlines()) == len(DIRECTIONS), done.stdout
