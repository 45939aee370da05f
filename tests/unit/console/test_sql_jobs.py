"""Jobs of the SQL page: a process for each text, its rows as they come, and its end. A small program stands for `ottla sql`."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ottla.console import sql
from ottla.console.sql import ROWS_MAX, RUNNING_MAX, Job, Jobs
from ottla.errors import OttlaError

PROGRAM = """
import json, sys, time
text = sys.stdin.read()
settings = open(sys.argv[1]).read()
kind, _, rest = text.partition(" ")
if kind == "rows":
    for number in range(int(rest)):
        print(json.dumps({"n": number, "square": number * number}), flush=True)
elif kind == "settings":
    print(json.dumps({"settings": settings, "file": sys.argv[1]}))
elif kind == "fail":
    print("no such topic", file=sys.stderr)
    sys.exit(1)
elif kind == "long":
    print(json.dumps({"x": "y" * int(rest)}), flush=True)
    print(json.dumps({"x": "short"}), flush=True)
elif kind == "wait":
    try:
        print(json.dumps({"n": 1}), flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        print(json.dumps({"n": "interrupted"}), flush=True)
elif kind == "deaf":
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(json.dumps({"n": 1}), flush=True)
    time.sleep(600)
"""
COMMAND = (sys.executable, "-c", PROGRAM)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "is_installed", lambda: True)


def run(work: Callable[[Jobs], Awaitable[None]]) -> None:
    async def main() -> None:
        jobs = Jobs(COMMAND)
        try:
            async with asyncio.timeout(60):
                await work(jobs)
        finally:
            await jobs.close()

    asyncio.run(main())


async def ended(job: Job) -> Job:
    assert job.task is not None
    await job.task
    return job


async def first_row(job: Job) -> None:
    while not job.rows:
        await asyncio.sleep(0.01)


def test_rows_come_with_their_columns() -> None:
    async def work(jobs: Jobs) -> None:
        job = await ended(jobs.start("rows 3", "ada", "test", {}))
        assert (job.columns, job.rows[-1], job.skipped, job.code) == (["n", "square"], {"n": 2, "square": 4}, 0, 0)
        assert jobs.get(job.id) is job
        assert jobs.all() == [job]

    run(work)


def test_first_rows_are_kept_and_the_others_counted() -> None:
    async def work(jobs: Jobs) -> None:
        job = await ended(jobs.start(f"rows {ROWS_MAX + 5}", "", "test", {}))
        assert (len(job.rows), job.skipped) == (ROWS_MAX, 5)

    run(work)


def test_row_that_is_too_long_is_counted_and_the_next_is_there() -> None:
    async def work(jobs: Jobs) -> None:
        job = await ended(jobs.start(f"long {3 << 20}", "", "test", {}))
        assert job.rows == [{"x": "short"}]
        assert job.skipped >= 1

    run(work)


def test_failure_keeps_its_message() -> None:
    async def work(jobs: Jobs) -> None:
        job = await ended(jobs.start("fail", "", "test", {}))
        assert (job.code, list(job.messages)) == (1, ["no such topic"])

    run(work)


def test_settings_are_in_a_file_of_this_user_that_goes_away() -> None:
    async def work(jobs: Jobs) -> None:
        job = jobs.start("wait", "", "test", {"bootstrap.servers": "a:9092", "sasl.jaas.config": 'x "p\\q"'})
        await first_row(job)
        await jobs.stop(job)
        job = await ended(jobs.start("settings", "", "test", {"sasl.jaas.config": 'x "p\\q"'}))
        assert job.rows[0]["settings"] == 'sasl.jaas.config=x "p\\\\q"\n'
        assert not Path(job.rows[0]["file"]).exists()

    run(work)


def test_stop_is_first_what_ctrl_c_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(jobs: Jobs) -> None:
        job = jobs.start("wait", "", "test", {})
        await first_row(job)
        await jobs.stop(job)
        assert job.is_stopped
        assert not job.is_running
        assert job.rows == [{"n": 1}, {"n": "interrupted"}]

    run(work)


def test_what_does_not_stop_is_killed_and_nothing_outlives_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "STOP_S", 0.2)
    left: list[int] = []

    async def work(jobs: Jobs) -> None:
        job = jobs.start("deaf", "", "test", {})
        await first_row(job)
        await jobs.stop(job)
        assert not job.is_running
        other = jobs.start("deaf", "", "test", {})
        await first_row(other)
        assert other.process is not None
        left.append(other.process.pid)

    run(work)
    with pytest.raises(ProcessLookupError):
        os.kill(left[0], 0)


def test_only_some_run_at_a_time() -> None:
    async def work(jobs: Jobs) -> None:
        for _ in range(RUNNING_MAX):
            jobs.start("wait", "", "test", {})
        with pytest.raises(OttlaError, match="run already: stop one, or wait"):
            jobs.start("wait", "", "test", {})

    run(work)


def test_cells_that_are_no_rows_are_messages() -> None:
    job = Job("", "", "test")
    job.take(b"created\n")
    job.take(json.dumps([1]).encode())
    assert (job.rows, list(job.messages)) == ([], ["created", "[1]"])
