"""Spark's own Kafka connector: its jars, fetched by Maven once into the cache that the tests use too (`$OTTLA_CACHE`)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.support.servers.kafka_jars import cache_folder

COORDINATES = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
"""Seen to work on Spark 4.3.0, for which no connector was published yet."""
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


class ConnectorUnavailable(Exception):
    """The connector's jars are not there; the text says what is missing."""


def connector_jars() -> list[Path]:
    """The four jars. A folder in the cache is always complete: Maven copies into one beside it, which is then renamed."""
    folder = cache_folder() / "spark-kafka-4.2.0"
    if not folder.is_dir():
        maven = shutil.which("mvn")
        if maven is None:
            raise ConnectorUnavailable("no mvn on PATH to fetch Spark's Kafka connector with: install Maven 3.8 or newer")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="spark-kafka.", suffix=".part", dir=folder.parent) as part:
            libs = Path(part) / "libs"
            for each in COORDINATES:
                command = [maven, "-B", "-q", COPY, f"-Dartifact={each}", f"-DoutputDirectory={libs}"]
                done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
                if done.returncode != 0:
                    output = (done.stdout + done.stderr).strip()[-1000:]
                    raise ConnectorUnavailable(f"Maven could not fetch {each} (exit {done.returncode}):\n{output}")
            if not folder.is_dir():
                libs.rename(folder)
    return sorted(folder.glob("*.jar"))
