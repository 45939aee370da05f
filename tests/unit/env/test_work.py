"""Worker threads and helper processes."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.env import HelperDied, OffLoop, Reserve, Steps, run_to_end
from ottla.env.real import ProcessHelpers, ThreadWorkers
from ottla.errors import OttlaError

JOB = """
import os, sys, errno
async def run_job(job, world):
    kind = job["kind"]
    if kind == "echo":
        print("this goes to stderr")
        world.progress({"at": 1})
        world.progress({"at": 2})
        return {"got": job, "nice": os.nice(0), "pid": os.getpid(), "files": world.disk.list_directory(job["path"])}
    if kind == "os":
        raise OSError(errno.ENOSPC, "full", "/some/file")
    if kind == "value":
        raise ValueError("this job is nonsense")
    if kind == "die":
        sys.stderr.write("last words")
        sys.stderr.flush()
        os._exit(7)
    if kind == "spin":
        world.progress({"pid": os.getpid()})
        while True:
            pass
    if kind == "large":
        return {"text": "x" * 3_000_000}
"""


@pytest.fixture
def job_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "a_test_job.py").write_text(textwrap.dedent(JOB))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "a_test_job"
    sys.modules.pop("a_test_job", None)


def wait_until_gone(pid: int, deadline_s: float = 60) -> bool:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def test_workers_run_off_the_loop_and_pass_results_and_errors() -> None:
    async def main() -> None:
        workers = ThreadWorkers(2)
        names = await asyncio.gather(*(workers.run(lambda: threading.current_thread().name) for _ in range(5)))
        assert all(name.startswith("ottla-worker") for name in names)
        with pytest.raises(ZeroDivisionError):
            await workers.run(lambda: 1 // 0)
        workers.close()
        workers.close()
        with pytest.raises(RuntimeError, match="closed"):
            await workers.run(lambda: None)

    asyncio.run(main())


def test_a_helper_answers_with_result_and_progress(job_module: str, tmp_path: Path) -> None:
    seen: list[dict[str, object]] = []
    job = {"kind": "echo", "path": str(tmp_path), "text": "ž\n"}
    result = asyncio.run(ProcessHelpers().run(job_module, job, seen.append))
    assert result["got"] == job
    assert result["pid"] != os.getpid()
    assert isinstance(result["nice"], int)
    assert result["nice"] > os.nice(0)
    assert "a_test_job.py" in result["files"]  # type: ignore[operator]
    assert seen == [{"at": 1}, {"at": 2}]


def test_a_large_result_comes_through(job_module: str) -> None:
    result = asyncio.run(ProcessHelpers().run(job_module, {"kind": "large"}))
    assert len(str(result["text"])) == 3_000_000


def test_errors_of_a_helper_are_raised_with_its_text(job_module: str) -> None:
    helpers = ProcessHelpers()
    with pytest.raises(OSError, match="full") as caught:
        asyncio.run(helpers.run(job_module, {"kind": "os"}))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/some/file")
    with pytest.raises(OttlaError, match="this job is nonsense"):
        asyncio.run(helpers.run(job_module, {"kind": "value"}))
    with pytest.raises(HelperDied, match=r"code 7 .*last words"):
        asyncio.run(helpers.run(job_module, {"kind": "die"}))
    with pytest.raises(OttlaError, match="no_such_module"):
        asyncio.run(helpers.run("no_such_module", {}))


def test_cancelling_ends_the_child(job_module: str) -> None:
    async def main() -> int:
        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(
            ProcessHelpers().run(job_module, {"kind": "spin"}, lambda report: started.set_result(int(str(report["pid"]))))
        )
        pid = await started
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pid

    assert wait_until_gone(asyncio.run(main()))


PARENT = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from ottla.env import HelperDied
from ottla.env.real import ProcessHelpers
asyncio.run(ProcessHelpers().run("a_test_job", {"kind": "spin"}, lambda report: print(report["pid"], flush=True)))
"""


def test_a_child_does_not_outlive_a_killed_parent(job_module: str, tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert wait_until_gone(pid)


def test_no_more_children_at_a_time_than_allowed(job_module: str, tmp_path: Path) -> None:
    async def main() -> list[object]:
        helpers = ProcessHelpers(processes_max=1)
        job = {"kind": "echo", "path": str(tmp_path)}
        results = await asyncio.gather(*(helpers.run(job_module, job) for _ in range(3)))
        return [result["pid"] for result in results]

    assert len(set(asyncio.run(main()))) == 3


def test_steps_run_to_their_end_in_place() -> None:
    seen: list[object] = []

    def steps() -> Steps[str]:
        yield None
        yield Reserve(1 << 40)
        seen.append((yield OffLoop(lambda: 7, 1)))
        try:
            yield OffLoop(lambda: 1 // 0, 1)
        except ZeroDivisionError:
            seen.append("caught")
        return "end"

    assert run_to_end(steps()) == "end"
    assert seen == [7, "caught"]


def test_steps_that_fail_raise_where_they_are_run() -> None:
    def steps() -> Steps[None]:
        yield None
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_to_end(steps())
