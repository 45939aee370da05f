"""Rewrites tests/golden/clients with Apache Kafka 4.3.0's clients: what its serializers and its partitioner make of values.

    .venv/bin/python -m tools.golden_clients.make

serializers.jsonl.gz    per line a form, a value, and the bytes that Kafka's serializer makes of it
keys.jsonl.gz           per line a key, its hash, and its partitions for some numbers of partitions
loads.jsonl.gz          per line the queue lengths of partitions, and the running sums that Kafka weighs them with
"""

import gzip
from pathlib import Path

from tests.support.servers.apache_kafka import ApacheKafka

HERE = Path(__file__).parent
TARGET = HERE.parent.parent / "tests" / "golden" / "clients"


def write(name: str, text: str) -> None:
    """Write lines, compressed without a timestamp, so that the same rows give the same file."""
    TARGET.mkdir(parents=True, exist_ok=True)
    (TARGET / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{TARGET / name}: {len(text.splitlines())} rows")


if __name__ == "__main__":
    apache_kafka = ApacheKafka.obtain()
    write("serializers.jsonl.gz", apache_kafka.run_java(HERE / "Serializers.java").stdout)
    write("keys.jsonl.gz", apache_kafka.run_java(HERE / "Partitions.java", "keys").stdout)
    write("loads.jsonl.gz", apache_kafka.run_java(HERE / "Partitions.java", "loads").stdout)
