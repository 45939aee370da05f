"""docs/commands.md, produce.md, groups-and-transactions.md and measuring.md: their lines run as they are printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.shell_scripts import ports_for_nodes, running_script

from ottla import Admin, Consumer, Producer
from ottla.errors import OttlaError

DOCS = Path(__file__).parents[3] / "docs"
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^ {4}((?:[^\n|]*\| )?(?:ottla|\$ ottla) [^\n]*)$", re.MULTILINE)
UNTIL_STOPPED = {"ottla consume greetings --from-beginning": " --max-messages 1"}


def lines_of(page: str) -> list[str]:
    """The command lines of a page, without the comments behind them."""
    text = FENCE.sub("", (DOCS / page).read_text("utf-8"))
    return [re.sub(r"\s{2,}#.*", "", line).strip() for line in LINE.findall(text)]


class Shell:
    """A shell in a folder, where `ottla` is this one and goes to the node that the first line of commands.md has started."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.servers = f"127.0.0.1:{port}"

    def run(self, line: str) -> str:
        """What a line prints. It must not fail."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "OTTLA_BOOTSTRAP_SERVERS": self.servers}
        done = subprocess.run(
            ["sh", "-ec", line],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def started(folder: Path) -> Iterator[Shell]:
    line, *_ = lines_of("commands.md")
    assert line == "ottla up"
    shell = Shell(folder, ports_for_nodes(1))

    def answers() -> bool:
        try:
            with Admin(shell.servers, request_timeout_ms=1000) as admin:
                return bool(admin.describe_cluster().nodes)
        except OttlaError:
            return False

    with running_script(f"exec {line} --port {shell.servers.rpartition(':')[2]}", folder):
        await_true(answers, "the node")
        yield shell


def test_first_commands(tmp_path: Path) -> None:
    with started(tmp_path) as shell:
        said = [shell.run(line + UNTIL_STOPPED.get(line, "")) for line in lines_of("commands.md")[1:4]]
    assert said == ["Created topic greetings.\n", "", "hello\n"]


@pytest.mark.slow
def test_lines_of_the_page_on_producing(tmp_path: Path) -> None:
    for name, text in (("a.txt", "1\n"), ("b.txt", "2\n"), ("pairs.txt", "k:v\n"), ("lines.txt", "3\n"), ("cat.png", "\0")):
        (tmp_path / name).write_text(text)
    (tmp_path / "dog.png").write_text("\1\n")
    (tmp_path / "events.json").write_text('{"id": "a", "b": 2}\n')
    lines = lines_of("produce.md")
    assert len(lines) == 10
    with started(tmp_path) as shell:
        shell.run("ottla topics create orders images paths copy events")
        for line in lines:
            if "jq " not in line or shutil.which("jq"):
                shell.run(line)
        assert shell.run("ottla consume images --from-beginning --until-end --json").count('"value') == 2
        assert shell.run("ottla consume copy --from-beginning --until-end").splitlines() == ["1", "2", "v", "3"]


@pytest.mark.slow
def test_lines_of_the_page_on_groups(tmp_path: Path) -> None:
    lines = [line for line in lines_of("groups-and-transactions.md") if "transactions abort" not in line]  # nothing hangs
    assert len(lines) == 9
    with started(tmp_path) as shell:
        shell.run("ottla topics create orders --partitions 2")
        with Producer(shell.servers) as producer:
            producer.send_many("orders", [b"a"] * 500, partition=0).wait(timeout=30)
            producer.send_many("orders", [b"b"] * 500, partition=1).wait(timeout=30)
        with Consumer(shell.servers, group_id="billing", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            await_true(lambda: bool(consumer.poll(timeout=1)), "a record")
        for line in lines:
            if "jq " not in line or shutil.which("jq"):
                shell.run(line.replace("localhost:9092", shell.servers))
        assert (tmp_path / "billing.csv").read_text().split()[1].startswith("orders,1,")


@pytest.mark.slow
def test_lines_of_the_page_on_measuring(tmp_path: Path) -> None:
    with started(tmp_path) as shell:
        shell.run("ottla topics create load orders")
        for line in lines_of("measuring.md"):
            if not line.startswith("ottla verifiable-consumer"):  # which reads until it is stopped
                shell.run(re.sub(r"^ottla perf (produce|consume) load", r"\g<0> --num-records 20000", line))
