"""Brings the orders of two topics together in one. Several flows may write to one topic, each with its own offsets."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


def tagged(view: str) -> DataFrame:
    """Records of a view, with where they come from in a header."""
    header = f.array(f.struct(f.lit("from").alias("key"), f.lit(view).cast("binary").alias("value")))
    return spark.readStream.table(view).select("key", "value", header.alias("headers"))


@dp.append_flow(target="all_orders")
def web_orders() -> DataFrame:
    """From the web."""
    return tagged("web")


@dp.append_flow(target="all_orders")
def shop_orders() -> DataFrame:
    """From the shop."""
    return tagged("shop")
