"""`local_session()`: a Spark session with good defaults for pipelines. What the caller or SPARK_CONF_DIR sets wins.

Spark's JVM inherits standard error when it starts and keeps it: with `log_file` it writes its log there, for as long as it
runs, and a terminal shows nothing but our own lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ottla.errors import OttlaError
from ottla.spark.java import use_java

LOCAL = "local[*]"
NO_PYSPARK = "this needs PySpark 4.3, which is not installed: pip install 'ottla[spark]'"


class SessionFailed(OttlaError):
    """Spark did not start."""


def require_pyspark() -> None:
    """Raise a sentence instead of an ImportError where there is no PySpark."""
    try:
        import pyspark.pipelines  # noqa: F401
    except ModuleNotFoundError:
        raise SessionFailed(NO_PYSPARK) from None


def defaults(master: str) -> dict[str, str]:
    """The settings of a session on `master` that nobody has set."""
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    if master.startswith("local"):
        # Spark's 200 shuffle partitions would make 200 state stores for each query. A checkpoint keeps its first number.
        found["spark.sql.shuffle.partitions"] = str(min(16, max(2, os.cpu_count() or 2)))
        found |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return found


def active_session() -> Any:
    """The session that this process has already, or None: it is somebody else's to stop."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def local_session(
    name: str = "ottla",
    *,
    master: str | None = None,
    remote: str | None = None,
    configuration: Mapping[str, str] | None = None,
    log_file: Path | None = None,
) -> Any:
    """A session on this machine, on the cluster `master`, or of the Spark Connect server `remote`."""
    require_pyspark()
    from pyspark.sql import SparkSession

    settings = dict(configuration or {})
    if remote is not None:
        builder = SparkSession.builder.remote(remote).appName(name)
    else:
        use_java()
        # Workers must be this Python: the one on the PATH may lack pyarrow and ottla.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        place = master or settings.get("spark.master") or LOCAL
        settings = defaults(place) | settings
        builder = SparkSession.builder.master(place).appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with _errors_to(log_file):
            return builder.getOrCreate()
    except Exception as error:
        place = remote or master or LOCAL
        hint = "" if log_file is None else f"; {log_file} has the rest"
        raise SessionFailed(f"Spark did not start on {place}: {_first_line(error)}{hint}") from error


@contextmanager
def _errors_to(path: Path | None) -> Iterator[None]:
    """Standard error of this process, and of all that it starts, goes to a file while this lasts."""
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(path, "ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
