"""docs/container.md: every block of `docker` commands, carried out by containers that need no engine."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.servers.image_containers import READY, Running, running

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "container.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("-d", action="store_true", required=True)
OPTIONS.add_argument("-e", action="append", default=[])
OPTIONS.add_argument("-p", action="append", default=[])
OPTIONS.add_argument("-v", action="append", default=[])
OPTIONS.add_argument("--name", required=True)
OPTIONS.add_argument("--hostname", default="container")
OPTIONS.add_argument("--read-only", action="store_true")
OPTIONS.add_argument("--tmpfs")
OPTIONS.add_argument("--user")
OPTIONS.add_argument("image", choices=["ottla"])
OPTIONS.add_argument("command", nargs=argparse.REMAINDER)


class Engine:
    """What of `docker` the page uses."""

    def __init__(self, image: Path, folder: Path, stack: ExitStack) -> None:
        self._image, self._folder, self._stack = image, folder, stack
        self._containers: dict[str, Running] = {}

    def run(self, words: list[str]) -> None:
        given = OPTIONS.parse_args(words)
        volumes = {}
        for each in given.v:
            source, target, *_ = each.split(":")
            volumes[self._folder / source] = target
        assert {published.rpartition(":")[2] for published in given.p} <= {"9092", "8081", "8080"}
        container = running(
            self._image,
            self._folder,
            given.command or None,
            environment=dict(each.split("=", 1) for each in given.e),
            volumes=volumes,
            user=given.user,
            is_read_only=given.read_only,
            hostname=given.hostname,
        )
        self._containers[given.name] = self._stack.enter_context(container)
        self._containers[given.name].await_line(READY)

    def exec(self, words: list[str]) -> None:
        done = self._containers[words[0]].container.execute(*words[1:])
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"

    def stop(self, words: list[str]) -> None:
        (name,) = words
        self._containers[name].send_and_read()
        assert self._containers[name].container.stop() == 0


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(BLOCKS.index(block)))
def test_commands_of_the_page(image: Path, tmp_path: Path, block: str) -> None:
    (tmp_path / "server.properties").write_text("num.partitions=6\n")
    (tmp_path / "data").mkdir()
    os.chown(tmp_path / "data", 1000, 0)
    (tmp_path / "data").chmod(0o2770)
    with ExitStack() as stack:
        engine = Engine(image, tmp_path, stack)
        for line in block.splitlines():
            docker, action, *words = shlex.split(line)
            assert docker == "docker"
            getattr(engine, action)(words)
