"""The demo of a cluster runs to its end, leaves nothing behind, and fails if a record is lost."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.demo.cluster import story as story_module
from tools.demo.cluster.load import Load
from tools.demo.processes import DemoFailed


@pytest.mark.slow
@pytest.mark.timeout(600)  # three nodes start, one of them twice: half a minute, more on a busy machine
def test_demo_kills_a_leader_and_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.demo.cluster", "--quick"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env={"TMPDIR": str(tmp_path), "PATH": ""},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout, "plain text in a pipe"
    killed = re.search(r"kill -9 \(node (\d)\)", done.stdout)
    assert killed is not None
    before, after_kill, after = re.split(r"kill -9|The node comes back", done.stdout)
    assert before.count("★ leads") == after_kill.count("★ leads") == after.count("★ leads") == 3
    assert re.search(rf"node {killed[1]}    ✗ out       ✗ out       ✗ out       down", after_kill)
    assert "✗" not in before + after
    sent = re.search(r"sent ([\d,]+), acknowledged ([\d,]+), failed 0, read ([\d,]+)", after)
    assert sent is not None
    assert sent[1] == sent[2] == sent[3]
    assert "nothing lost, nothing doubled, all in order" in after
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_lost_record_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(Load):
        def __init__(self) -> None:
            self.sent = self.acknowledged = 3
            self.failures, self.longest_wait_s = [], 0.5

        def stop(self) -> None:
            """Nothing was sent."""

    monkeypatch.setattr(story_module, "read_all", lambda *where: [[0], [1, 1], []])
    told = story_module.Story(tmp_path, 1)
    told._load = Stopped()
    with pytest.raises(DemoFailed, match="1 records are lost, 1 doubled"):
        told.count()
