"""`local_session()`: a Spark session with good defaults for pipelines. What the caller or SPARK_CONF_DIR sets wins.

Spark's JVM inherits standard error when it starts and keeps it: with `log_file` it writes its log there, for as long as it
runs, and a terminal shows nothing but our own lines.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ottla.errors import OttlaError
from ottla.spark.class_archive import JAVA_OPTIONS, java_options
from ottla.spark.errors import reason_of
from ottla.spark.java import use_java
from ottla.spark.places import check_master, check_remote, is_local
from ottla.spark.shipping import Notice, Wishes, check_workers, pack, parts_to_ship, register_data_sources, temporary_folder

LOCAL = "local[*]"
SHIP = "spark.ottla.ship"
"""A setting: false if workers have Ottla and its packages installed. Then only the pipeline's own modules are shipped."""
ARROW_BATCH_BYTES = 4_000_000
"""How much Spark sends to a Python process at a time, instead of 10,000 rows. Its JVM zeroes a buffer for each batch, of the
next power of two: 16 MB for 10,000 rows of 1 KB. Below 4 MiB, because the row that reaches the limit is still in the batch."""
BRIEF = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""For a JVM of seconds: no threads for the collector, no second compiler."""
UI = {"spark.ui.enabled": "true", "spark.port.maxRetries": "100"}
"""Spark's UI takes the next free port from 4040 on. With its own 16 tries, the 17th pipeline on a machine would not start."""
ON_PATH = "so name one that is on the PATH of every machine"
NO_PYSPARK = "this needs PySpark 4.3, which is not installed: pip install 'ottla[spark]'"


class SessionFailed(OttlaError):
    """Spark did not start."""


def require_pyspark() -> None:
    """Raise a sentence instead of an ImportError where there is no PySpark."""
    try:
        import pyspark.pipelines  # noqa: F401
    except ModuleNotFoundError:
        raise SessionFailed(NO_PYSPARK) from None


def defaults(master: str, address: str | None = None) -> dict[str, str]:
    """The settings of a session on `master` that nobody has set. `address` is ours, as the cluster sees it."""
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(ARROW_BATCH_BYTES),
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    if address is not None and ":" not in address and "SPARK_LOCAL_IP" not in os.environ:
        # Workers connect to the driver. Spark would name the host, which machines of another network may not know.
        found["spark.driver.host"] = address
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
    ships: Wishes | None = None,
    notice: Notice = lambda text: None,
    is_brief: bool = False,
    has_ui: bool = False,
) -> Any:
    """A session on this machine, on the cluster `master`, or of the Spark Connect server `remote`.

    Ottla is shipped to the workers of a cluster, with what `ships` names; a server must have it. `notice` gets what is
    unusual or takes long. `is_brief` is for work of seconds: a local JVM leaves out what pays off later. `has_ui` serves the
    UI unless `spark.ui.enabled` says no; of a local session, on loopback only.
    """
    require_pyspark()
    settings = dict(configuration or {})
    wishes = replace(ships or Wishes(), modules_only=settings.get(SHIP, "true").lower() == "false")
    place = remote or master or settings.get("spark.master") or LOCAL
    with _errors_to(log_file), _explained(place, log_file):
        if remote is not None:
            check_remote(remote)
            spark = _built(name, settings, remote=remote)
        else:
            address = check_master(place)
            java = use_java()
            _make_importable(wishes.folder)
            if is_local(place):
                # Workers must be this Python: the one on the PATH may lack pyarrow and ottla.
                use_python(settings, sys.executable)
            else:
                use_python(settings, python_of_cluster())
                settings |= pack(parts_to_ship(wishes)).settings(settings)
            options = " ".join(filter(None, (BRIEF if is_brief and is_local(place) else "", java_options(java))))
            quick = {JAVA_OPTIONS: options} if options else {}
            ui = UI if has_ui else {}
            with _ui_on_loopback(is_local(place)):
                spark = _built(name, defaults(place, address) | ui | quick | settings, master=place)
    if is_local(place) and remote is None:
        return spark
    try:
        with _explained(place, log_file):
            register_data_sources(spark)
            check_workers(spark, is_remote=remote is not None, notice=notice)
    except BaseException:
        spark.stop()
        raise
    return spark


@contextmanager
def _ui_on_loopback(is_local: bool) -> Iterator[None]:
    """Spark's UI has no password, and knows no setting for its address but this variable, which its JVM takes along."""
    if not is_local or "SPARK_LOCAL_IP" in os.environ:
        yield
        return
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    try:
        yield
    finally:
        del os.environ["SPARK_LOCAL_IP"]


def ui_address(spark: Any) -> str | None:
    """Where the session's UI is; None if it has none, or if it is that of a Spark Connect server."""
    try:
        return spark.sparkContext.uiWebUrl  # type: ignore[no-any-return]  # a property without a type
    except Exception:  # Connect's sessions have no context, and raise an error of their own for it
        return None


def _built(name: str, settings: Mapping[str, str], *, master: str | None = None, remote: str | None = None) -> Any:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    builder = builder.master(master) if remote is None else builder.remote(remote)
    builder = builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def use_python(settings: Mapping[str, str], default: str) -> None:
    """Set the program that Spark starts as Python, here and in workers, unless the user has set one."""
    # PySpark reads the setting only in its own launcher.
    chosen = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or default
    if shutil.which(chosen) is None:
        raise SessionFailed(f"PYSPARK_PYTHON is {chosen}, which is not on this machine: Spark starts it here too, {ON_PATH}")
    os.environ["PYSPARK_PYTHON"] = chosen
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def python_of_cluster() -> str:
    """The name under which every machine of a cluster is to find its Python, such as `python3.12`; here it is this Python."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folder = temporary_folder()
    # A script, as a link to the Python of a virtual environment would not find its packages.
    (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    (folder / name).chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
    return name


def _make_importable(folder: Path | None) -> None:
    """Let the Python processes that Spark starts here import the modules of a pipeline."""
    if folder is not None:
        given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*filter(None, given), str(folder)]))


@contextmanager
def _explained(place: str, log_file: Path | None) -> Iterator[None]:
    """What Spark raises becomes a sentence; what is one already stays."""
    try:
        yield
    except OttlaError:
        raise
    except Exception as error:
        hint = "" if log_file is None else f"; {log_file} has the rest"
        # A master that does not answer Spark's registration, three times 20 s long, shows only as this.
        is_refused = "stopped SparkContext" in str(error)
        why = "what answers there accepts no session: it is no master of Spark 4.3" if is_refused else reason_of(error)
        raise SessionFailed(f"Spark did not start on {place}: {why}{hint}") from error


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
