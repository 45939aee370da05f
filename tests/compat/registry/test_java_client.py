"""The registry, as Confluent's Java client and its Avro serializers see it.

Confluent does not publish them on Maven Central, but Apache Pinot's shaded jar there contains them, under their own names.
Apicurio's serdes are no such client: they write Confluent's wire format, and speak to nothing but Apicurio's own API.
"""

import json
import os
import subprocess
from pathlib import Path
from urllib.request import urlretrieve

import pytest
from tests.conftest import Unavailable
from tests.support.jars.java_classes import compiled
from tests.support.jars.kafka_jars import KafkaUnavailable, find_java
from tests.support.jars.maven_jars import cache_folder, locked
from tests.support.servers.apache_kafka import JAVA_SOURCES
from tests.support.servers.kafka_server import HANG_S, QUICK_JVM_FLAGS

from ottla.schemas import AvroDeserializer, AvroSerializer
from ottla.testing import Broker

pytestmark = pytest.mark.slow

VERSION = "1.5.0"
JAR = f"pinot-confluent-avro-{VERSION}-shaded.jar"
ADDRESS = f"https://repo1.maven.org/maven2/org/apache/pinot/pinot-confluent-avro/{VERSION}/{JAR}"
ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [{"name": "id", "type": "long"}, {"name": "customer", "type": "string"}],
    }
)

FOUND = {
    "same id": "true",
    "id of another subject": "true",
    "by id": "true",
    "latest": "2",
    "version of a schema": "2",
    "by version": "true",
    "versions": "[1, 2]",
    "subjects of id": "[copy-value, java-value]",
    "subjects": "[copy-value, java-value, python-topic-value]",
    "incompatible": "409 409",
    "compatible": "true",
    "reasons": "true",
    "missing subject": "404 40401",
    "missing version": "404 40402",
    "missing schema": "404 40403",
    "bad level": "422 42203",
    "level": "FULL FULL",
    "references": "[{name='n.R', subject='java-value', version=1}]",
    "resolved": "n.R",
    "still referenced": "422 42206",
    "deleted version": "2",
    "versions left": "[1] [1, 2]",
    "deleted subject": "[1]",
    "deleted for good": "[1]",
    "mode": "READONLY READONLY",
    "read only": "422 42205",
    "import": "IMPORT 900",
    "read": 'shop.Order {"id": 7, "customer": "Ada"}',
}


@pytest.fixture(scope="module")
def program() -> list[str]:
    """The beginning of the command."""
    try:
        java = find_java()
    except KafkaUnavailable as reason:
        raise Unavailable(str(reason)) from None
    jar = fetched()
    source = JAVA_SOURCES / "ConfluentRegistryClient.java"
    classes = compiled(java, str(jar), source)
    if classes is None:
        raise Unavailable(f"there is no javac beside {java} or on PATH: install a whole JDK")
    return [java, *QUICK_JVM_FLAGS, "-cp", os.pathsep.join([str(jar), str(classes)]), source.stem]


def fetched() -> Path:
    """The jar, fetched when first needed. Not by Maven: the jar's description sends it to Confluent's repository, too."""
    jar = cache_folder() / JAR
    jar.parent.mkdir(parents=True, exist_ok=True)
    with locked(jar.with_suffix(".lock")):
        if not jar.exists():
            part = jar.with_suffix(".part")
            try:
                urlretrieve(ADDRESS, part)
            except OSError as problem:
                raise Unavailable(f"{ADDRESS} cannot be fetched: {problem}") from None
            part.rename(jar)
    return jar


def test_confluents_java_client_gets_what_it_expects(program: list[str]) -> None:
    with Broker() as broker:
        url = broker.schema_registry_url
        framed = AvroSerializer(url, ORDER).serialize("python-topic", [], {"id": 7, "customer": "Ada"})
        assert framed is not None
        done = subprocess.run([*program, url, framed.hex()], capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == 0, done.stdout + done.stderr
        found = dict(line.split("\t") for line in done.stdout.splitlines())
        written = bytes.fromhex(found.pop("written"))
        assert AvroDeserializer(url).deserialize("java-topic", [], written) == {"a": 7, "b": "Ada"}
    assert found == FOUND
