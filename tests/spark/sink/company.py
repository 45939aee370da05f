"""Five queries with sinks of several kinds in one session, in a process of its own, for tests that kill it.

Runs until the file `stop` appears. A query that ends is noted in `failures` and started again, as an operator would.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.spark.sink.pipeline import session

EXACTLY_ONCE = ("once-1", "once-2", "once-3")
AT_LEAST_ONCE = "at-least-once"
DELTA = "delta"


def start(spark: Any, bootstrap: str, name: str, folder: Path, two_phase: str) -> Any:
    where = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.readStream.format("ottla").options(**where, subscribe="input", startingOffsets="earliest").load()
    results = rows.selectExpr("key", "concat('r', cast(value as string)) as value")
    writer = results.writeStream.queryName(name).option("checkpointLocation", str(folder / "checkpoints" / name))
    if name == DELTA:
        writer = writer.format("ottla_delta").option("path", str(folder / DELTA))
    elif name == AT_LEAST_ONCE:
        writer = writer.format("ottla").options(**where, topic=name)
    else:
        writer = writer.format("ottla").options(**where, topic=name, exactlyOnce="true", twoPhaseCommit=two_phase)
    return writer.trigger(processingTime="1 second").start()


def main(bootstrap: str, work: str, two_phase: str) -> None:
    folder = Path(work)
    spark = session(folder)
    names = (*EXACTLY_ONCE, AT_LEAST_ONCE, DELTA)
    queries = {name: start(spark, bootstrap, name, folder, two_phase) for name in names}
    while not (folder / "stop").exists():
        for name, query in queries.items():
            if not query.isActive:
                with (folder / "failures").open("a", encoding="utf-8") as file:
                    file.write(f"{name}: {str(query.exception())[:2000]}\n----\n")
                queries[name] = start(spark, bootstrap, name, folder, two_phase)
        time.sleep(0.1)
    for query in queries.values():
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
