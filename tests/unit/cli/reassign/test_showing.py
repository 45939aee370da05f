"""The state of a plan in words."""

import pytest

from ottla.cli.reassign.moves import DONE, ELSEWHERE, MISSING, MOVING, DirectoryProgress, PartitionProgress, Status
from ottla.cli.reassign.progress import directory_line, partition_line, show_status
from ottla.client.admin.log_dirs import Replica
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
