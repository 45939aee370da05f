"""Joins orders with the payments that follow within ten minutes."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.append_flow(target="paid_orders")
def match_payments() -> DataFrame:
    """Spark keeps orders and payments until their watermarks have passed, not for ever."""
    order = f.from_json(f.col("value").cast("string"), "id INT, at TIMESTAMP, amount DOUBLE").alias("o")
    orders = spark.readStream.table("orders").select(order).select("o.*").withWatermark("at", "10 minutes")
    payment = f.from_json(f.col("value").cast("string"), "order_id INT, paid_at TIMESTAMP").alias("p")
    payments = spark.readStream.table("payments").select(payment).select("p.*").withWatermark("paid_at", "10 minutes")
    in_time = f.expr("id = order_id AND paid_at BETWEEN at AND at + INTERVAL 10 MINUTES")
    joined = orders.join(payments, in_time)
    return joined.select(f.col("id").cast("string").alias("key"), f.to_json(f.struct("id", "amount")).alias("value"))
