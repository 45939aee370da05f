"""The demo without Spark: starts a node, writes, reads, kills it, restarts it and dumps its files, with a user's commands.

Each command runs in a process of its own, on a free port and in a temporary folder that is deleted at the end. The demo checks
that the kill loses no acknowledged record, and fails otherwise.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from time import perf_counter

import click
from tools.demo.processes import OTTLA, DemoFailed, forget_group, watch_group

RECORDS = 100_000
SHOWN = 4
WIDTH = 190
READY_WITHIN_S = 30


class Demo:
    """The steps, in order."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._node: subprocess.Popen[str] | None = None
        self._address = ""

    def run(self) -> None:
        try:
            say("1. A node, from nothing")
            self.start()
            say("2. A topic, and records from a pipe")
            self.ottla("topics", "create", "orders", "--partitions", "3")
            self.produce()
            say("3. Read them")
            self.ottla(
                "consume", "orders", "--from-beginning", "--max-messages", str(SHOWN), "--property", "print.key=true",
                "--property", "print.offset=true", "--property", "print.partition=true",
            )  # fmt: skip
            say("4. Kill the node without warning and start it again: every acknowledged record is there")
            self.kill()
            self.start()
            offsets = self.ottla("get-offsets", "--topic", "orders")
            found = sum(int(line.rpartition(":")[2]) for line in offsets.splitlines())
            if found != RECORDS:
                raise DemoFailed(f"the node acknowledged {RECORDS:,} records and has {found:,}: please report this")
            click.echo(f"   {found:,} of {RECORDS:,}")
            say("5. The files are Kafka's")
            segment = self._data / "orders-0" / f"{0:020d}.log"
            self.ottla("dump-log", str(segment), "--print-data-log", lines=SHOWN)
        finally:
            self.stop()

    def start(self) -> None:
        command = ["up", "--port", "0", "--data", str(self._data), "--json"]
        started_s = perf_counter()
        click.echo("   $ ottla up")
        self._node = subprocess.Popen([*OTTLA, *command], stdout=subprocess.PIPE, text=True, start_new_session=True)
        watch_group(self._node.pid)
        assert self._node.stdout is not None
        line = self._node.stdout.readline()
        if not line:
            raise DemoFailed("the node did not start; its output is above")
        self._address = json.loads(line)["bootstrap_servers"]
        click.echo(f"   up at {self._address} after {(perf_counter() - started_s) * 1000:.0f} ms")

    def kill(self) -> None:
        assert self._node is not None
        click.echo(f"   $ kill -9 {self._node.pid}")
        self._node.send_signal(signal.SIGKILL)
        self._node.communicate()
        forget_group(self._node.pid)
        self._node = None

    def stop(self) -> None:
        if self._node is not None:
            self._node.terminate()
            self._node.communicate(timeout=READY_WITHIN_S)
            forget_group(self._node.pid)

    def produce(self) -> None:
        lines = "".join(f"customer-{number % 1000}:order {number} of {number % 97} pieces\n" for number in range(RECORDS))
        click.echo(
            f"   $ orders | ottla produce orders --property parse.key=true --property key.separator=:   # {RECORDS:,} lines"
        )
        started_s = perf_counter()
        self.call(["produce", "orders", "--property", "parse.key=true", "--property", "key.separator=:"], stdin=lines)
        click.echo(f"   acknowledged after {perf_counter() - started_s:.1f} s, including the start of the command")

    def ottla(self, *arguments: str, lines: int | None = None) -> str:
        """Run a command as a user would, and show it with its output."""
        click.echo(f"   $ ottla {' '.join(argument.replace(str(self._data), 'DATA') for argument in arguments)}")
        output = self.call(list(arguments))
        for line in output.splitlines()[:lines]:
            click.echo(f"   {line.replace(str(self._data), 'DATA')[:WIDTH]}")
        return output

    def call(self, arguments: list[str], stdin: str | None = None) -> str:
        environment = {**os.environ, "OTTLA_BOOTSTRAP_SERVERS": self._address}
        done = subprocess.run(
            [*OTTLA, *arguments], input=stdin, capture_output=True, text=True, env=environment, check=False, timeout=120
        )
        if done.returncode:
            raise DemoFailed(f"ottla {arguments[0]} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout


def say(step: str) -> None:
    click.echo(f"\n{step}")
