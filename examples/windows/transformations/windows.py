"""Counts clicks in tumbling, sliding and session windows. A window is written when the watermark has passed it."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.temporary_view
def timed_clicks() -> DataFrame:
    """Clicks may come up to a minute late; later ones are left out."""
    click = f.from_json(f.col("value").cast("string"), "user STRING, at TIMESTAMP").alias("c")
    return spark.readStream.table("clicks").select(click).select("c.*").withWatermark("at", "1 minute")


def counted(window: f.Column, *keys: str) -> DataFrame:
    """Counts for each window, as records."""
    counts = spark.readStream.table("timed_clicks").groupBy(window.alias("w"), *keys).count()
    key = f.date_format("w.start", "HH:mm") if not keys else f.col(keys[0])
    return counts.select(key.alias("key"), f.to_json(f.struct("count")).alias("value"))


@dp.append_flow(target="per_minute")
def tumbling() -> DataFrame:
    """One window for each minute."""
    return counted(f.window("at", "1 minute"))


@dp.append_flow(target="moving")
def sliding() -> DataFrame:
    """Windows of five minutes, a new one every two and a half minutes."""
    return counted(f.window("at", "5 minutes", "150 seconds"))


@dp.append_flow(target="sessions")
def sessions() -> DataFrame:
    """A user's clicks without a pause of five minutes."""
    return counted(f.session_window("at", "5 minutes"), "user")
