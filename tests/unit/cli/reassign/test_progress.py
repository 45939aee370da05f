"""The state of a plan in words."""

from typing import Any

import pytest
from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla

from ottla.cli.reassign import progress as waiting
from ottla.cli.reassign.progress import Progress, directory_line, partition_line, progress_line, show_status
from ottla.client.admin.log_dirs import Replica
from ottla.client.reassignment_moves import DONE, ELSEWHERE, MISSING, MOVING, DirectoryProgress, PartitionProgress, Status
from ottla.ids import TopicPartition

ORDERS, REPLICA = TopicPartition("orders", 0), Replica("orders", 0, 2)


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (PartitionProgress(DONE, (1, 2), (1, 2)), "Reassignment of partition orders-0 is completed."),
        (PartitionProgress(MOVING, (1, 2), (2,)), "Reassignment of partition orders-0 is still in progress."),
        (
            PartitionProgress(ELSEWHERE, (1, 2), (2, 3)),
            "There is no active reassignment of partition orders-0, but replica set is 1,2 rather than 2,3.",
        ),
    ],
)
def test_partitions(progress: PartitionProgress, said: str) -> None:
    assert partition_line(ORDERS, progress) == said


@pytest.mark.parametrize(
    ("move", "said"),
    [
        (DirectoryProgress(DONE, "/b", "/b", None), "Reassignment of replica orders-0-2 completed successfully."),
        (
            DirectoryProgress(MISSING, "/b", None, None),
            "Partition orders-0 cannot be found in any live log directory on broker 2.",
        ),
        (DirectoryProgress(MOVING, "/b", "/a", "/b"), "Reassignment of replica orders-0-2 is still in progress."),
        (
            DirectoryProgress(MOVING, "/b", "/a", "/c"),
            "Partition orders-0 on broker 2 is being moved to log dir /c instead of /b.",
        ),
        (
            DirectoryProgress(ELSEWHERE, "/b", "/a", None),
            "Partition orders-0 on broker 2 is not being moved from log dir /a to /b.",
        ),
    ],
)
def test_log_directories(move: DirectoryProgress, said: str) -> None:
    assert directory_line(REPLICA, move) == said


def test_lines_of_a_plan_with_directories(capsys: pytest.CaptureFixture[str]) -> None:
    partitions = {ORDERS: PartitionProgress(DONE, (2,), (2,))}
    show_status(Status(partitions, {REPLICA: DirectoryProgress(DONE, "/b", "/b", None)}, False), False, False)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "Reassignment of partition orders-0 is completed.",
        "Reassignment of replica orders-0-2 completed successfully.",
    ]


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
