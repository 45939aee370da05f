"""An archive of Spark's classes for the JVM: it maps 15,000 of them ready to use, instead of unpacking and checking each.

Java calls this class data sharing. The archive is made once for each Java and PySpark, by a process of its own that nobody
waits for, and lies in the user's cache. A JVM that cannot use it starts without. OTTLA_SPARK_ARCHIVE=off switches it off.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ottla.spark.java import Java, find_java

SWITCH = "OTTLA_SPARK_ARCHIVE"
QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""An archive that does not fit is a warning on standard output, among the results."""
JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
"""Spark puts these before spark.driver.extraJavaOptions, which are the user's."""
EXIT_LIMIT_S = 3600.0
"""How long the JVM may take to write the archive, with the lowest priority beside whatever else runs."""
SPACE_MIN_BYTES = 1 << 30
"""The archive has about 160 MB; on a disk with less left than this it is not made."""


def is_on() -> bool:
    """Whether archives are used."""
    return os.environ.get(SWITCH, "").lower() not in ("off", "0", "false", "no")


def archive_path(java: Java) -> Path | None:
    """Where the archive for this Java and PySpark is, or is to be; None without jars."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    jars = Path(spec.origin).parent / "jars"
    try:
        # The JVM refuses an archive of jars with another path or time. A Java is known by its path and time, too.
        parts = [str(jars), java.home, str((Path(java.home) / "bin" / "java").stat().st_mtime_ns)]
        parts += [f"{each.name} {each.stat().st_mtime_ns}" for each in sorted(jars.iterdir())]
    except OSError:
        return None
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ottla"
    return base / f"spark-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}.jsa"


def java_options(java: Java) -> str:
    """Options for the JVM that starts faster with the archive; none if there is none."""
    path = archive_path(java) if is_on() else None
    # Spark splits the options at blanks.
    if path is None or not path.is_file() or " " in str(path):
        return ""
    return f"-XX:SharedArchiveFile={path} {QUIET}"


def make_in_background(java: Java) -> bool:
    """Start the process that makes the archive, if there is none and none has failed. Returns whether it was started."""
    path = archive_path(java) if is_on() else None
    if path is None or path.exists() or path.with_suffix(".failed").exists() or " " in str(path):
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        room = os.statvfs(path.parent)
        if room.f_bavail * room.f_frsize < SPACE_MIN_BYTES or _is_being_made(path):
            return False
        subprocess.Popen(
            [sys.executable, "-m", "ottla.spark.class_archive"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False  # a cache that cannot be written: Spark starts as slowly as before
    return True


def make(path: Path) -> bool:
    """Start Spark, use what statements use, end it, and keep its classes. Returns whether there is an archive now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False  # another process makes it
        if path.exists():
            return True
        for old in path.parent.glob("spark-*.jsa"):  # of a Java or PySpark that was replaced
            old.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="spark-archive-") as folder:
            made = Path(folder) / path.name
            try:
                _dump(made, Path(folder))
                os.replace(made, path)
            except Exception as error:  # whatever it is, the next start must not try it again
                path.with_suffix(".failed").write_text(f"{error!r}\n", encoding="utf-8")
                return False
    return True


def _dump(made: Path, folder: Path) -> None:
    from ottla.spark.session import local_session

    configuration = {
        JAVA_OPTIONS: f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit={made} {QUIET}",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
    }
    spark = local_session("ottla class archive", master="local[2]", configuration=configuration, log_file=folder / "log")
    try:
        _exercise(spark)
        process = spark.sparkContext._gateway.proc
    finally:
        spark.stop()
    process.stdin.close()  # Spark's JVM ends with its standard input, and writes the archive then
    try:
        process.wait(EXIT_LIMIT_S)
    finally:
        process.kill()  # it has ended, unless it took too long


def _exercise(spark: object) -> None:
    """Load the classes of usual statements: a source and functions in Python, JSON, aggregation, a join, a window."""
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource, DataSourceReader

    class Reader(DataSourceReader):
        def read(self, partition: object) -> object:
            now = pa.array([0], pa.timestamp("us", "UTC"))
            yield pa.RecordBatch.from_arrays([pa.array([b'{"id": 1}'], pa.binary()), now], names=["value", "timestamp"])

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "ottla_exercise"

        def schema(self) -> str:
            return "value binary, timestamp timestamp"

        def reader(self, schema: object) -> DataSourceReader:
            return Reader()

    assert isinstance(spark, SparkSession)
    spark.dataSource.register(Source)
    spark.read.format("ottla_exercise").load().createOrReplaceTempView("records")
    spark.sql("SELECT * FROM records LIMIT 3").collect()
    spark.sql(
        "WITH rows AS (SELECT from_json(cast(value AS string), 'id BIGINT, name STRING').id AS id, timestamp FROM records) "
        "SELECT a.id % 10 AS shard, window(a.timestamp, '1 minute').start, count(*), sum(b.id) FROM rows a JOIN rows b "
        "ON a.id = b.id WHERE a.id > 0 GROUP BY 1, window(a.timestamp, '1 minute') ORDER BY 1 LIMIT 10"
    ).collect()


def _is_being_made(path: Path) -> bool:
    try:
        with open(path.with_suffix(".lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def main() -> int:
    """Make the archive of this user's Java and PySpark, behind everything else that the machine does."""
    os.nice(19)
    found = archive_path(find_java())
    return 0 if found is not None and make(found) else 1


if __name__ == "__main__":
    sys.exit(main())
