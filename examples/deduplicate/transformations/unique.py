"""Lets the first event of each id through, and drops its repeats of the next hour."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.append_flow(target="unique_events")
def first_of_each_id() -> DataFrame:
    """Spark forgets an id when the watermark has passed it by an hour."""
    event = f.from_json(f.col("value").cast("string"), "id INT").alias("e")
    events = (
        spark.readStream.table("events").select("key", "value", "timestamp", event).select("key", "value", "timestamp", "e.*")
    )
    return events.withWatermark("timestamp", "1 hour").dropDuplicatesWithinWatermark(["id"]).select("key", "value")
