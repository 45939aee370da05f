"""Adds the customer's city, from a file, to each order."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.append_flow(target="orders_with_city")
def add_city() -> DataFrame:
    """Orders of unknown customers go on without a city."""
    order = f.from_json(f.col("value").cast("string"), "id INT, customer INT").alias("o")
    orders = spark.readStream.table("orders").select("key", order).select("key", "o.*")
    customers = spark.read.table("customers").withColumnRenamed("id", "customer")
    joined = orders.join(customers, "customer", "left")
    return joined.select("key", f.to_json(f.struct("id", "customer", "city")).alias("value"))
