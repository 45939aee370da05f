"""A cluster leaves nothing behind, however its test ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S

from ottla.testing import BrokerFailed, Cluster

USER = """
import json, os, signal, sys, time
from ottla.testing import Cluster

cluster = Cluster(nodes=3)
cluster.start()
cluster.node(3).pause()
print(json.dumps({"pids": [node.pid for node in cluster.nodes], "data": str(cluster.data)}), flush=True)
if sys.argv[1] == "raise":
    raise SystemExit(3)
time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(("how", "code"), [("raise", 3), ("kill", -signal.SIGKILL)])
def test_nothing_is_left_when_the_tests_process_ends(how: str, code: int) -> None:
    user = subprocess.Popen([sys.executable, "-c", USER, how], stdout=subprocess.PIPE, text=True)
    assert user.stdout is not None
    facts = json.loads(user.stdout.readline())
    try:
        if how == "kill":
            assert all(map(is_alive, facts["pids"]))
            user.kill()
        assert user.wait(HANG_S) == code
        await_true(lambda: not any(map(is_alive, facts["pids"])), "the nodes end, also the paused one")
        await_true(lambda: not Path(facts["data"]).exists(), "their folder is removed")
    finally:
        user.stdout.close()
        user.kill()
        user.wait()
        for pid in filter(is_alive, facts["pids"]):
            os.kill(pid, signal.SIGKILL)


def test_a_node_that_cannot_start_ends_the_others() -> None:
    cluster = Cluster({"log.segment.bytes": 1}, nodes=3)
    with pytest.raises(BrokerFailed, match=r"^node \d: the broker did not start: .*log\.segment\.bytes"):
        cluster.start()
    assert not cluster.is_running
    cluster.stop()
