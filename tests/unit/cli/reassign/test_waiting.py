"""`execute --wait`: the bar, the end, and an interruption."""

from typing import Any

import pytest
from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla

from ottla.cli.reassign import progress as waiting
from ottla.cli.reassign.progress import Progress, progress_line

PLAN = b'{"partitions":[{"topic":"orders","partition":1,"replicas":[4,3,1]}]}'


def test_bar() -> None:
    line = progress_line(Progress(4, 1, 2_000_000, 500_000), 75)
    assert line == f"{'━' * 6}{'╌' * 18}  25%  1 of 4 partitions  500.0 kB of 2.0 MB  1 min 15 s"
    assert progress_line(Progress(2, 1, 0, 0), 3).endswith("50%  1 of 2 partitions  3 s")
    assert Progress(2, 1, 10, 10).share == 0.99, "not done before all partitions are"
    assert Progress(2, 2, 10, 9).share == 1.0


def test_progress_is_shown_until_the_end(ottla: RunOttla, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(waiting, "LINE_EVERY_S", 0.0)
    seen: list[str] = []

    def line(progress: Progress, seconds: float) -> str:
        seen.append(f"{progress.partitions_done}/{progress.partitions} {progress.bytes_there}/{progress.bytes_wanted}")
        cluster.ongoing, cluster.partitions[1] = {}, [4, 3, 1]
        return "a line"

    monkeypatch.setattr(waiting, "progress_line", line)
    cluster.ongoing = {1: ([4, 3, 1, 2], [4], [2])}
    said = ottla("reassign", "execute", "-", "--additional", "--wait", stdin=PLAN)
    assert said.rc == 0, said.err
    assert (seen, said.err) == (["0/1 100/100"], "ottla: a line\nDone: 1 partition moved.\n")
    assert "Done" not in said.out, "standard output is the plan that goes back"


def test_dead_target_is_named_once(ottla: RunOttla, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY_S", 0.01)
    cluster.ongoing = {1: ([4, 3, 1, 2], [4], [2])}
    looks = 0
    ask = waiting._progress

    async def look(*arguments: Any) -> Progress:
        nonlocal looks
        looks += 1
        cluster.down = {4}
        if looks == 4:
            cluster.ongoing, cluster.partitions[1], cluster.down = {}, [4, 3, 1], set()
        return await ask(*arguments)

    monkeypatch.setattr(waiting, "_progress", look)
    said = ottla("reassign", "execute", "-", "--additional", "--wait", stdin=PLAN)
    assert said.rc == 0, said.err
    assert said.err.count("broker 4 is down: the move of orders-1 waits for it; start it, or stop the moves of the plan") == 1


def test_move_that_another_cancels(ottla: RunOttla, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SEE_CHANGES_S", 0.05)
    monkeypatch.setattr(waiting, "LOOK_EVERY_S", 0.01)
    said = ottla("reassign", "execute", "-", "--wait", stdin=PLAN)
    assert said.rc == 1
    assert "but replica set is 2,3,1 rather than 4,3,1" in said.err


def test_interruption_says_that_it_goes_on(ottla: RunOttla, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "finish", interrupt)
    said = ottla("reassign", "execute", "-", "--wait", stdin=PLAN)
    assert said.rc == 130
    assert "the partitions go on moving" in said.err
