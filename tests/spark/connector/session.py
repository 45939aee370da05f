"""A Spark session with Spark's own Kafka connector, in a process of its own: the session that other tests share has no jars.

Reads a JSON command in each line of standard input and answers with a line of JSON. It ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

COLUMNS = (
    "topic",
    "partition",
    "offset",
    "cast(key as string) as key",
    "cast(value as string) as value",
    "unix_millis(timestamp) as timestamp",
    "transform(headers, each -> array(each.key, cast(each.value as string))) as headers",
)


def make_session(folder: str, jars: str) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    from pyspark.sql import SparkSession

    from ottla.spark.datasource import OttlaDataSource

    settings = {
        "spark.jars": jars,
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": f"{folder}/spark",
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    made.dataSource.register(OttlaDataSource)
    return made


def read(spark: Any, options: dict[str, str]) -> Any:
    """All rows of a batch read, sorted, with their headers."""
    rows = spark.read.format("kafka").options(includeHeaders="true", **options).load().selectExpr(*COLUMNS)
    return sorted([list(row) for row in rows.collect()])


def write(spark: Any, options: dict[str, str], rows: list[Any], sink: str = "kafka") -> None:
    """A batch write of [key, value, headers]."""
    schema = "key string, value string, headers array<struct<key: string, value: string>>"
    frame = spark.createDataFrame([(key, value, [tuple(each) for each in headers]) for key, value, headers in rows], schema)
    typed = frame.selectExpr(
        "cast(key as binary) as key",
        "cast(value as binary) as value",
        "transform(headers, each -> struct(each.key as key, cast(each.value as binary) as value)) as headers",
    )
    typed.write.format(sink).options(includeHeaders="true", **options).mode("append").save()


def stream(spark: Any, source: dict[str, str], target: dict[str, str], checkpoint: str, sink: str = "kafka") -> list[int]:
    """Copy all that there is now, and return how many rows each batch had."""
    rows = spark.readStream.format("kafka").options(includeHeaders="true", **source).load()
    writer = rows.select("key", "value", "headers").writeStream.format(sink).options(includeHeaders="true", **target)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return [each.numInputRows for each in query.recentProgress if each.numInputRows]


ACTIONS = {"read": read, "write": write, "stream": stream}


def main(folder: str, jars: str) -> None:
    # PySpark's own lines must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    spark = make_session(folder, jars)
    for line in sys.stdin:
        command = json.loads(line)
        action = ACTIONS[command.pop("action")]
        try:
            answer = {"result": action(spark, **command)}
        except Exception as error:
            answer = {"error": str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
