"""Runs the quick tests in two parts side by side: those on Spark in one process with one session, all others in workers.

    python tools/run_tests.py --workers 2
    python tools/run_tests.py --lint "make lint"   first this command, which has to pass
    python tools/run_tests.py --failed --most 3    what failed in the last run once more, alone

Spark takes seconds to start and half a gigabyte, so its tests share one process. What that process prints is shown when the
other part has ended. With --failed, more failures than --most are too many to be accidents, and nothing is run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPARK = "tests/spark"
CACHES = {"rest": ".pytest_cache", "spark": ".pytest_cache/spark"}
"""Where each part notes what has failed: one file would be overwritten by the part that ends last."""
LAST_FAILED = ("--last-failed", "--last-failed-no-failures", "none")


def command(part: str, *arguments: str) -> list[str]:
    """The command of a part: `spark` or `rest`."""
    chosen = [SPARK] if part == "spark" else [f"--ignore={SPARK}"]
    return [sys.executable, "-m", "pytest", "-m", "not slow", "-o", f"cache_dir={CACHES[part]}", *chosen, *arguments]


def in_workers(workers: int) -> list[str]:
    """Options of pytest-xdist. Each worker gets a run of neighbouring tests, so that one starts the server that they share.

    The default scheduling deals tests out one by one: every worker starts every server. tests/compat/client took 210 s that
    way and 83 s this way, on a busy machine.
    """
    return ["-n", str(workers), "--dist", "worksteal"]


def failed_tests(part: str, root: Path = ROOT) -> list[str]:
    """The names that pytest has noted for a part; none if it did not run."""
    cache = root / CACHES[part] / "v" / "cache" / "lastfailed"
    return sorted(json.loads(cache.read_text(encoding="utf-8"))) if cache.exists() else []


def run_all(workers: int) -> int:
    """Run both parts; 0 if all tests have passed."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as shown:
        with subprocess.Popen(command("spark"), cwd=ROOT, stdout=shown, stderr=subprocess.STDOUT) as spark:
            try:
                rest = subprocess.run(command("rest", *in_workers(workers)), cwd=ROOT, check=False).returncode
                print("The tests on Spark, which ran beside these:", flush=True)
                spark.wait()
            finally:
                if spark.poll() is None:
                    spark.terminate()
        shown.seek(0)
        print(shown.read(), flush=True)
        return rest or spark.returncode


def are_compiled(tests: Path = ROOT / "tests") -> bool:
    """Whether an earlier run has compiled the tests: most of them are, if its first one is."""
    return next((tests / "bystander" / "__pycache__").glob("*-pytest-*.pyc"), None) is not None


def lint_and_compile(lint: str) -> int:
    """Run the command `lint`, and on a fresh clone compile the tests beside it; the exit code of `lint`.

    The type checker keeps one core busy. On another, the tests are collected once: that compiles them, which takes more than
    24 CPU seconds, and every worker would do it at the same time. Once they are compiled, it would cost 8 seconds for nothing.
    """
    if are_compiled():
        return subprocess.run(lint, cwd=ROOT, shell=True, check=False).returncode
    collect = [*command("rest"), "--collect-only", "-q"]
    with subprocess.Popen(collect, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as compiling:
        code = subprocess.run(lint, cwd=ROOT, shell=True, check=False).returncode
        if code != 0:
            compiling.terminate()
    return code


def run_failed(most: int) -> int:
    """Run what has failed once more; 0 if it passes now."""
    failed = {part: names for part in CACHES if (names := failed_tests(part))}
    names = [name for each in failed.values() for name in each]
    if not names:
        sys.exit("No test has failed: something before the tests did.")
    if len(names) > most:
        sys.exit(f"{len(names)} tests failed: too many to run again.")
    print("FAILED, and run once more, alone:", *names, sep="\n  ", flush=True)
    return max(subprocess.run(command(part, *LAST_FAILED), cwd=ROOT, check=False).returncode for part in failed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", type=int, default=2, help="processes for all tests but those on Spark")
    parser.add_argument("--lint", default="", metavar="COMMAND", help="run this first; the tests run if it passes")
    parser.add_argument("--failed", action="store_true", help="only what failed in the last run")
    parser.add_argument("--most", type=int, default=3, help="how many failures may be run again")
    given = parser.parse_args()
    if given.failed:
        sys.exit(run_failed(given.most))
    sys.exit((given.lint and lint_and_compile(given.lint)) or run_all(given.workers))


if __name__ == "__main__":
    main()
