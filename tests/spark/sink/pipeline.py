"""A topic → transform → topic pipeline in a process of its own, for tests that kill it. Runs until the file `stop` appears.

A query that fails is started again, as an operator would; a driver that is killed is started again by the test.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any


def session(folder: Path) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    from pyspark.sql import SparkSession

    settings = {
        "spark.master": "local[2,3]",  # a task may fail twice
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "spark"),
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def start(spark: Any, bootstrap: str, source: str, target: str, folder: Path, two_phase: str) -> Any:
    where = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.readStream.format("ottla").options(**where, subscribe=source, startingOffsets="earliest").load()
    results = rows.selectExpr("key", "concat('r', cast(value as string)) as value")
    writer = results.writeStream.format("ottla").options(**where, topic=target, exactlyOnce="true", twoPhaseCommit=two_phase)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(processingTime="0 seconds").start()


def main(bootstrap: str, source: str, target: str, work: str, two_phase: str) -> None:
    folder = Path(work)
    spark = session(folder)
    query = start(spark, bootstrap, source, target, folder, two_phase)
    while not (folder / "stop").exists():
        if not query.isActive:
            with (folder / "failures").open("a", encoding="utf-8") as file:
                file.write(f"{str(query.exception())[:2000]}\n----\n")
            query = start(spark, bootstrap, source, target, folder, two_phase)
        (folder / "query").write_text(str(query.id), encoding="utf-8")
        time.sleep(0.05)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
