"""Keeps the orders of 100 and more, as they are."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.append_flow(target="large_orders")
def keep_large_orders() -> DataFrame:
    """Keys and values go on unchanged."""
    amount = f.get_json_object(f.col("value").cast("string"), "$.amount").cast("double")
    return spark.readStream.table("orders").where(amount >= 100).select("key", "value")
