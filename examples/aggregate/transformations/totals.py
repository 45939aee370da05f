"""Sums up the orders of each customer, in a table and as a feed of changes."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.table
def parsed_orders() -> DataFrame:
    """All orders, as files."""
    order = f.from_json(f.col("value").cast("string"), "customer STRING, amount DOUBLE").alias("o")
    return spark.readStream.table("orders").select(order).select("o.*")


@dp.materialized_view
def customer_totals() -> DataFrame:
    """Computed again by every run."""
    return spark.read.table("parsed_orders").groupBy("customer").agg(f.sum("amount").alias("total"), f.count("*").alias("n"))


@dp.append_flow(target="totals", spark_conf={"ottla.outputMode": "update"})
def total_changes() -> DataFrame:
    """A new record for each customer whose total has changed: the mode update is for `ottla pipeline run` only."""
    totals = spark.readStream.table("parsed_orders").groupBy("customer").agg(f.sum("amount").alias("total"))
    return totals.select(f.col("customer").alias("key"), f.to_json(f.struct("total")).alias("value"))
