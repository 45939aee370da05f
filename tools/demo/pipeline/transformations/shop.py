"""Three topics in, three topics out: a join, two windowed aggregates, results exactly once."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, date_format, expr, from_json, struct, to_json, window
from pyspark.sql.functions import sum as total

spark = SparkSession.active()


def records(topic: str, schema: str) -> DataFrame:
    """The values of a topic, which are JSON, as columns. Events may be a minute late."""
    value = from_json(col("value").cast("string"), f"{schema}, at TIMESTAMP")
    return spark.readStream.table(topic).select(value.alias("value")).select("value.*").withWatermark("at", "1 minute")


@dp.temporary_view
def paid() -> DataFrame:
    """Orders joined with their payments, which come up to ten minutes later."""
    orders = records("orders", "order_id STRING, customer STRING, product STRING, cents BIGINT").alias("o")
    payments = records("payments", "order_id STRING, method STRING").alias("p")
    is_paid = expr("o.order_id = p.order_id AND p.at BETWEEN o.at AND o.at + INTERVAL 10 MINUTES")
    return orders.join(payments, is_paid).select("o.order_id", "o.customer", "o.product", "o.cents", "p.method", "o.at")


@dp.append_flow(target="paid_orders")
def write_paid_orders() -> DataFrame:
    """Every paid order, by its id."""
    found = spark.readStream.table("paid")
    return found.select(col("order_id").alias("key"), to_json(struct("*")).alias("value"))


@dp.append_flow(target="revenue")
def write_revenue() -> DataFrame:
    """What the orders of each five minutes have earned, once their window has closed."""
    found = spark.readStream.table("paid").groupBy(window("at", "5 minutes")).agg(total("cents").alias("cents"))
    shown = found.select(date_format("window.start", "HH:mm").alias("window"), "cents")
    return shown.select(col("window").alias("key"), to_json(struct("window", "cents")).alias("value"))


@dp.append_flow(target="popular_pages")
def write_popular_pages() -> DataFrame:
    """How often each page was viewed in each five minutes."""
    views = records("page_views", "page STRING, visitor INT")
    found = views.groupBy(window("at", "5 minutes"), "page").agg(count("*").alias("views"))
    shown = found.select(date_format("window.start", "HH:mm").alias("window"), "page", "views")
    return shown.select(col("page").alias("key"), to_json(struct("*")).alias("value"))
