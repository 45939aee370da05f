"""A standalone Spark cluster and a Spark Connect server from the pip package, on loopback, with a Python of their own.

They end with their `with` block, or with this process if it is killed (`keeping.py`).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark
from tests.support.servers.keeping import keep

import ottla

HANG_S = 180
SPARK_HOME = Path(pyspark.__file__).parent
CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
FOR_WORKERS = ("pyarrow", "numpy", "pandas", "dateutil", "pytz", "tzdata", "six")
"""What Spark itself needs in its Python workers."""
FOR_SERVERS = (*FOR_WORKERS, "grpc", "grpc_status", "google", "zstandard")
"""The same for a Spark Connect server, whose Python functions may open sessions."""
SMALL_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The second compiler and the parallel collector pay off only in long runs."""


OF_OTTLA = ("crc32c", "cramjam", "fastavro", "deltalake", "arro3", "arro3_core", "deprecated", "wrapt", "typing_extensions")
"""What Ottla needs in a Spark Connect server for decoding and Delta tables."""


def python_without_ottla(folder: Path, packages: tuple[str, ...] = FOR_WORKERS) -> Path:
    """A virtual environment of this Python with these packages of ours as links, and nothing else; returns its programs."""
    venv.create(folder, with_pip=False, symlinks=True)
    ours = SPARK_HOME.parent
    theirs = _packages(folder)
    for name in packages:
        for each in (*ours.glob(name), *ours.glob(f"{name}.libs"), *ours.glob(f"{name}.py"), *ours.glob(f"{name}-*.dist-info")):
            (theirs / each.name).symlink_to(each)
    assert "No module named 'ottla'" in _import_error(folder, "pyarrow, ottla")
    return folder / "bin"


def python_with_ottla(folder: Path) -> Path:
    """The same for a Spark Connect server, with Ottla."""
    programs = python_without_ottla(folder, (*FOR_SERVERS, *OF_OTTLA))
    (_packages(folder) / "ottla").symlink_to(Path(ottla.__file__).parent)
    assert _import_error(folder, "ottla.spark.clients, deltalake") == ""
    return programs


def _packages(folder: Path) -> Path:
    return folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def _import_error(folder: Path, names: str) -> str:
    command = [folder / "bin" / "python", "-c", f"import {names}"]
    return subprocess.run(command, capture_output=True, text=True, env={}, check=False).stderr


class SparkProcesses:
    """Processes of Spark that find another Python first on their PATH, and nothing of ours on its import path."""

    def __init__(self, folder: Path, programs: Path) -> None:
        keep()
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        hidden = {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV", "OTTLA_PURE"}
        self._environment = {name: value for name, value in os.environ.items() if name not in hidden}
        self._environment |= {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "JDK_JAVA_OPTIONS": SMALL_JAVA,
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def start(self) -> None:
        """Start the processes, and wait until they serve."""
        raise NotImplementedError

    def close(self) -> None:
        """End all processes, with those that they have started."""
        for process in reversed(self._started):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(HANG_S)

    def log(self, name: str) -> str:
        """What a process has written so far."""
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def _launch(self, name: str, *command: str, **variables: str) -> None:
        with open(self.folder / f"{name}.log", "wb") as file:
            self._started.append(
                subprocess.Popen(
                    [str(SPARK_HOME / "bin" / command[0]), *command[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    cwd=self.folder,
                    env=self._environment | variables,
                    start_new_session=True,
                )
            )

    def _await(self, name: str, pattern: str) -> re.Match[str]:
        deadline_s = time.monotonic() + HANG_S
        while (found := re.search(pattern, self.log(name))) is None:
            assert self._started[-1].poll() is None, f"{name} has ended:\n{self.log(name)}"
            assert time.monotonic() < deadline_s, f"{name} does not serve:\n{self.log(name)}"
            time.sleep(0.1)
        return found


class SparkCluster(SparkProcesses):
    """A master and two workers; `master` is what `--master` takes."""

    master = ""

    def start(self) -> None:
        """Start the master, then the workers."""
        spark_class, package = "spark-class", "org.apache.spark.deploy"
        place = ("--host", "127.0.0.1", "--webui-port", "0")
        self._launch("master", spark_class, f"{package}.master.Master", *place, "--port", "0")
        self.master = self._await("master", r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")[1]
        for name in ("worker-1", "worker-2"):
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name))
            self._launch(name, spark_class, f"{package}.worker.Worker", *place, *size, self.master)
        for name in ("worker-1", "worker-2"):
            self._await(name, "Successfully registered with master")


class ConnectServer(SparkProcesses):
    """A Spark Connect server on two cores of this machine; `remote` is what `--remote` takes."""

    remote = ""

    def start(self) -> None:
        """Start the server on a free port."""
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
        }
        flags = [flag for name, value in settings.items() for flag in ("--conf", f"{name}={value}")]
        self._launch("connect", "spark-submit", "--master", "local[2]", "--class", CONNECT_SERVER, *flags, "spark-internal")
        port = self._await("connect", r"Spark Connect server started at: \S*?:(\d+)")[1]
        self.remote = f"sc://127.0.0.1:{port}"
