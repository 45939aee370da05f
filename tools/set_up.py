"""Sets up `.venv` for the targets of the Makefile, and shows what it is doing.

    python3 tools/set_up.py core    what Ottla itself needs, compiled kernels, an editable install
    python3 tools/set_up.py demo    Spark and what the demo draws with; where it cannot be had, the demo runs without
    python3 tools/set_up.py dev     what tests, lint and benchmarks need on top of that

On a terminal each step is one line that is rewritten; elsewhere a step that takes longer says where it is every 10 seconds.
Build tools are installed into `.venv` once, so pip builds without a second, isolated copy of them. Kernels that are newer than
their sources are not compiled again (setup.py).
"""

from __future__ import annotations

import queue
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"
PIP = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
SAY_EVERY_S = 10
LINES_SHOWN = 30
PURE = "run as pure Python"
"""What setup.py says when it has not compiled the kernels."""


class SetUpFailed(Exception):
    """A command failed; the text says which, with the end of its output."""


def pip_status(line: str) -> str | None:
    """What a line of pip's output means for somebody who waits, or None."""
    words = line.split()
    if words[:1] == ["Collecting"]:
        return f"looking for {re.split('[<>=!~;[]', words[1])[0]}"
    if words[:1] in (["Downloading"], ["Using"]) and words[-1].endswith("B)"):
        return f"fetching {words[-3].rpartition('/')[2].partition('-')[0]} {' '.join(words[-2:])}"
    if words[:3] == ["Installing", "collected", "packages:"]:
        return f"installing {len(words) - 3} packages"
    return None


def kernel_status(line: str) -> str | None:
    """How many kernels setup.py has translated to C and compiled, or None."""
    if " Cythonizing " in line:
        return f"translated to C: {line.split()[0].strip('[]')}"
    return line if line.startswith("kernels compiled:") else None


class Steps:
    """Runs commands one after the other, each as a numbered step with its progress and its duration."""

    def __init__(self, count: int, out: TextIO = sys.stdout) -> None:
        self._count = count
        self._number = 0
        self._out = out
        self._rewrites = out.isatty()

    def run(self, what: str, command: list[str], status_of: Callable[[str], str | None] = pip_status) -> list[str]:
        """The output of `command`, by line. Raises SetUpFailed if it fails."""
        self._number += 1
        name = f"[{self._number}/{self._count}] {what}"
        if not self._rewrites:
            self._line(name)
        started_s = said_s = monotonic()
        status, output = "", []
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = _lines_of(process)
        while True:
            now_s = monotonic()
            if self._rewrites:
                self._rewrite(f"{name} … {now_s - started_s:.0f} s  {status}")
            elif now_s - said_s >= SAY_EVERY_S:
                self._line(f"      {now_s - started_s:.0f} s  {status or 'under way'}")
                said_s = now_s
            try:
                line = lines.get(timeout=1)
            except queue.Empty:
                continue
            if line is None:
                break
            output.append(line)
            status = status_of(line) or status
        code = process.wait()
        took = f"{monotonic() - started_s:.0f} s"
        if code:
            end = "\n".join(output[-LINES_SHOWN:])
            raise SetUpFailed(f"{what} FAILED after {took}, exit code {code}: {' '.join(command)}\n{end}")
        if self._rewrites:
            self._rewrite(f"{name} … {took}\n")
        else:
            self._line(f"      done in {took}")
        return output

    def _line(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def _rewrite(self, text: str) -> None:
        """Replace the line; a text wider than the terminal would wrap, and then only its last row be replaced."""
        width = shutil.get_terminal_size().columns - 1
        shown = text if text.endswith("\n") else text[:width]
        print(f"\r\x1b[K{shown}", end="", file=self._out, flush=True)


def _lines_of(process: subprocess.Popen[str]) -> queue.Queue[str | None]:
    """The lines that a process prints, as they come, then None."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line.strip())
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def requirements() -> tuple[list[str], list[str], list[str]]:
    """What pyproject.toml asks for: for the core with its build tools, for the demo, and for tests and benchmarks."""
    import tomllib  # not at the top: an older Python must get as far as being refused

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    core = project["build-system"]["requires"] + project["project"]["dependencies"]
    demo = [*extras["spark"], *(each for each in extras["demo"] if not each.startswith("ottla"))]
    extra = ("dev", "docs", "registry", "console", "peers", "delta", "iceberg", "postgres")
    rest = [each for name in extra for each in extras[name]]
    return core, demo, demo + rest


def has_pip() -> bool:
    """Whether `.venv` is complete; one whose creation was interrupted has no pip."""
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", "import pip"], capture_output=True, check=False).returncode == 0


def set_up_core() -> None:
    started_s = monotonic()
    print("Setting up in .venv, once: less than a minute on two idle cores.", flush=True)
    steps = Steps(3 if has_pip() else 4)
    if not has_pip():
        steps.run("Virtual environment", [sys.executable, "-m", "venv", str(PYTHON.parent.parent)])
    steps.run("Packages (15 MB)", [*PIP, *requirements()[0]])
    output = steps.run("Compiled kernels", [str(PYTHON), "-u", "setup.py", "-q", "build_ext", "--inplace"], kernel_status)
    if any(PURE in line for line in output):
        print("      The kernels cannot be compiled: pure Python serves instead, slower (docs/troubleshooting.md).", flush=True)
    steps.run("Ottla itself", [*PIP, "--no-deps", "--no-build-isolation", "--editable", "."])
    print(f"Ready after {monotonic() - started_s:.0f} s.", flush=True)


def set_up_demo() -> None:
    try:
        Steps(1).run("Spark (550 MB)", [*PIP, *requirements()[1]])
    except SetUpFailed as failure:
        print(f"      Spark cannot be installed, so the demo runs without it. {str(failure).splitlines()[0]}", flush=True)


def set_up_dev() -> None:
    Steps(1).run("Packages for tests, lint and benchmarks, with Spark (700 MB)", [*PIP, *requirements()[2]])


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what refuses an older one
        version = sys.version.split()[0]
        sys.exit(f"Ottla needs Python 3.11 or newer; this is {version}. Try: make PYTHON=python3.12 ...")
    targets = {"core": set_up_core, "demo": set_up_demo, "dev": set_up_dev}
    if len(sys.argv) != 2 or sys.argv[1] not in targets:
        sys.exit(f"usage: set_up.py {'|'.join(targets)}")
    try:
        targets[sys.argv[1]]()
    except SetUpFailed as failure:
        sys.exit(f"\n{failure}")
    except KeyboardInterrupt:
        sys.exit("\ninterrupted; run it again to go on")


if __name__ == "__main__":
    main()
