"""Raises an alarm when a sensor's reading jumps by ten or more: state of our own for each key."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

spark = SparkSession.active()


class Jumps(StatefulProcessor):
    """Keeps the last reading of each sensor."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.last = handle.getValueState("last", "reading DOUBLE")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        readings = pd.concat(list(rows)).sort_values("number")
        last = self.last.get()
        before = None if last is None else last[0]
        found = []
        for reading in readings["reading"]:
            if before is not None and abs(reading - before) >= 10:
                found.append((key[0], f"{before:g} -> {reading:g}"))
            before = float(reading)
        self.last.update((before,))
        yield pd.DataFrame(found, columns=["key", "value"])

    def close(self) -> None:
        """Nothing is open."""


@dp.append_flow(target="alarms")
def raise_alarms() -> DataFrame:
    """Alarms as records with the sensor as key."""
    reading = f.from_json(f.col("value").cast("string"), "sensor STRING, number INT, reading DOUBLE").alias("r")
    readings = spark.readStream.table("readings").select(reading).select("r.*")
    return readings.groupBy("sensor").transformWithStateInPandas(
        Jumps(), outputStructType="key STRING, value STRING", outputMode="Append", timeMode="None"
    )
