"""Spark's own Kafka connector: its jars in the local cache (`maven_jars.py`)."""

from pathlib import Path

from tests.support.jars.maven_jars import JarsUnavailable, fetch_with_maven

__all__ = ["JarsUnavailable", "connector_jars"]

COORDINATES = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
"""Seen to work on Spark 4.3.0, for which no connector was published yet."""


def connector_jars() -> list[Path]:
    """The four jars. What else they depend on is part of PySpark."""
    return fetch_with_maven("Spark's Kafka connector", "spark-kafka-4.2.0", COORDINATES, is_transitive=False)
