"""The usual way into a log comes to the same as the long one, and so do the twins of the kernel that does it."""

import json
import os
import subprocess
import sys

import pytest
from tests.support.append_story import CONFIGS, Story, tell

from ottla.log import kernel
from ottla.log.kernels import LogTail, Prepared
from ottla.log.partition_log import PartitionLog
from ottla.records.kernels import PURE_ASKED, is_compiled

SEEDS = 8 * len(CONFIGS)


def no_short_way(*_: object) -> None:
    return None


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_short_way_comes_to_the_same_as_the_long_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    short = tell(seed)
    monkeypatch.setattr(PartitionLog, "prepare", no_short_way)
    assert tell(seed) == short


@pytest.mark.skipif(not is_compiled(kernel), reason="the kernels are not compiled in this install")
def test_both_twins_tell_the_same_stories() -> None:
    count = 3 * len(CONFIGS)
    asked = "0" if PURE_ASKED else "1"
    other = subprocess.run(
        [sys.executable, "-m", "tests.support.append_story", str(count)],
        env={**os.environ, "OTTLA_PURE": asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(other.stdout) == [tell(seed) for seed in range(count)]


def test_most_batches_go_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[Prepared | None] = []

    def prepare(log: PartitionLog, *arguments: object) -> Prepared | None:
        ways.append(LogTail.prepare(log, *arguments))  # type: ignore[arg-type]  # handed on as they came
        return ways[-1]

    monkeypatch.setattr(PartitionLog, "prepare", prepare)
    story = Story(1)
    story.tell()
    appended = sum(len(outcome) > 2 and outcome[6] > 0 for outcome in story.outcomes)
    assert sum(way is not None for way in ways) > 0.6 * appended
