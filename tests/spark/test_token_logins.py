"""Logins with tokens that options name, from Spark's driver and executors, against Apache Kafka."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S, ports_of
from tests.support.servers.secure_kafka import secure_properties
from tests.support.servers.tls_server import make_certificates
from tests.support.servers.token_endpoint import token_endpoint, unsigned_token

from ottla import Admin
from ottla.spark.errors import sentence_of

HANDLER = "kafka.sasl.login.callback.handler.class"


@pytest.fixture(scope="module")
def ports(apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    with apache_kafka.start_server(secure_properties(certificates)) as server:
        yield ports_of(server.properties)


def login(ports: dict[str, int], **settings: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": f"127.0.0.1:{ports['SASL']}",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        **{f"kafka.{name}": value for name, value in settings.items()},
    }


@pytest.fixture
def topics(ports: dict[str, int], request: pytest.FixtureRequest) -> tuple[str, str]:
    names = f"{request.node.originalname}-a", f"{request.node.originalname}-b"
    with Admin(f"127.0.0.1:{ports['PLAINTEXT']}") as admin:
        admin.create_topics(dict.fromkeys(names, 3)).raise_first()
    return names


def copied(spark: Any, options: dict[str, str], topics: tuple[str, str], checkpoint: Path, **sink: str) -> list[str]:
    """20 records written as a batch, copied by a stream, read as a batch."""
    source, target = topics
    rows = spark.range(20).selectExpr("cast(id as string) value")
    rows.write.format("ottla").options(**options, topic=source).mode("append").save()
    stream = spark.readStream.format("ottla").options(**options, subscribe=source, startingOffsets="earliest").load()
    writer = stream.select("value").writeStream.format("ottla").options(**options, topic=target, **sink)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(HANG_S)
    found = spark.read.format("ottla").options(**options, subscribe=target).load().selectExpr("cast(value as string)").collect()
    return sorted(row[0] for row in found)


@pytest.mark.slow
@pytest.mark.kafka
def test_token_endpoint(spark: Any, ports: dict[str, int], topics: tuple[str, str], tmp_path: Path) -> None:
    with token_endpoint() as endpoint:
        options = login(ports, **endpoint.settings())
        assert copied(spark, options, topics, tmp_path / "c", exactlyOnce="true") == sorted(str(n) for n in range(20))
        assert 1 <= endpoint.requests <= 30  # one for each Python process of Spark's, not for each of its connections


@pytest.mark.slow
@pytest.mark.kafka
def test_python_function(ports: dict[str, int], topics: tuple[str, str], tmp_path: Path) -> None:
    """In a module on the path of the driver's and the executors' Python, with a session of its own."""
    (tmp_path / "spark_login.py").write_text(f"def token(settings):\n    return {unsigned_token(600)!r}\n")
    options = login(ports, **{"sasl.login.callback.handler.class": "spark_login:token"})
    script = f"""
from pathlib import Path
from pyspark.sql import SparkSession
from tests.spark.test_token_logins import copied
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
print(copied(spark, {options!r}, {topics!r}, Path({str(tmp_path / "c")!r}), exactlyOnce="true"))
"""
    path = os.pathsep.join([str(tmp_path), os.getcwd(), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, env=environment, check=False)
    assert done.stdout.strip() == str(sorted(str(n) for n in range(20))), done.stderr


def test_missing_function_is_one_sentence(spark: Any) -> None:
    options = login({"SASL": 1}, **{"sasl.login.callback.handler.class": "no_login:token"})
    with pytest.raises(PySparkException) as caught:
        spark.read.format("ottla").options(**options, subscribe="t").load().collect()
    said = sentence_of(caught.value)
    assert said is not None
    assert "sasl.login.callback.handler.class=no_login:token: cannot import no_login" in said
