"""A private PostgreSQL server on a Unix socket in a temporary folder. It ends with its process (`keeping.py`)."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.servers.keeping import keep

READY_TIMEOUT_S = 60


def postgres_programs() -> Path | None:
    """The folder with initdb and postgres, or None."""
    on_path = shutil.which("initdb")
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    chosen = on_path or (found[-1] if found else None)
    return Path(chosen).parent if chosen else None


class PostgresServer:
    """A running server; `url` is what clients connect with."""

    def __init__(self, programs: Path) -> None:
        keep()
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self._account: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            account = next(each for each in pwd.getpwall() if each.pw_name in ("postgres", "nobody"))
            self._account = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            for parent in self.folder.parents:
                if parent.stat().st_mode & 0o001 == 0:
                    parent.chmod(parent.stat().st_mode | 0o001)
        self.url = f"postgresql://tester@/postgres?host={self.folder}"
        data = str(self.folder / "data")
        self._run("initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        command = [str(programs / "postgres"), "-D", data, "-k", str(self.folder), "-c", "listen_addresses=", "-c", "fsync=off"]
        self._log = (self.folder / "log").open("wb")
        self._process = subprocess.Popen(command, cwd=self.folder, stdout=self._log, stderr=self._log, **self._account)
        self._await_ready()

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments], cwd=self.folder, capture_output=True, text=True, **self._account
        )
        assert done.returncode == 0, f"{program} failed: {done.stdout}{done.stderr}"

    def _await_ready(self) -> None:
        import psycopg

        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                log = (self.folder / "log").read_text(errors="replace")
                assert self._process.poll() is None, f"PostgreSQL has ended: {log}"
                assert time.monotonic() < deadline, f"PostgreSQL is not ready after {READY_TIMEOUT_S} s: {log}"
                time.sleep(0.05)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement; its rows, if it has some."""
        import psycopg

        with psycopg.connect(self.url) as connection:
            found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def close(self) -> None:
        """Stop the server and remove its folder."""
        self._process.terminate()
        self._process.wait(60)
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
