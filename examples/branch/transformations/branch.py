"""Sends events that are JSON with an id to one topic, and all others to another."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.temporary_view
def checked_events() -> DataFrame:
    """Events with their id, which is null if they have none."""
    identity = f.try_parse_json(f.col("value").cast("string"))
    found = f.try_variant_get(identity, "$.id", "long")
    return spark.readStream.table("events").select("key", "value", found.alias("id"))


@dp.append_flow(target="good")
def good_events() -> DataFrame:
    """Those with an id."""
    return spark.readStream.table("checked_events").where("id IS NOT NULL").select("key", "value")


@dp.append_flow(target="bad")
def bad_events() -> DataFrame:
    """Those without one."""
    return spark.readStream.table("checked_events").where("id IS NULL").select("key", "value")
