"""Rewrites tests/golden/records with Apache Kafka 4.3.0: batches from its builder, and its answers to produced bytes.

    .venv/bin/python -m tools.golden_records.make

batches.jsonl.gz    per line one buffer that Records.java made, and what Kafka reads in it
produce.jsonl.gz    per line one case of cases.py, and what Kafka's broker answers and stores
"""

import gzip
import json
from pathlib import Path

from tests.support.servers.apache_kafka import ApacheKafka
from tools.golden_records.cases import produce_cases

HERE = Path(__file__).parent
TARGET = HERE.parent.parent / "tests" / "golden" / "records"


def golden_batches(kafka: ApacheKafka) -> list[dict[str, object]]:
    """The batches that Records.java makes."""
    return [json.loads(line) for line in kafka.run_java(HERE / "Records.java", "make").stdout.splitlines()]


def golden_answers(kafka: ApacheKafka) -> list[dict[str, object]]:
    """The cases with Kafka's answers."""
    cases = list(produce_cases())
    answers = kafka.run_java(HERE / "Produce.java", stdin="\n".join(case.line for case in cases) + "\n").stdout.splitlines()
    return [
        {
            "version": case.version,
            "now_ms": case.now_ms,
            "settings": case.settings,
            "bytes": case.data.hex(),
            **json.loads(answer),
        }
        for case, answer in zip(cases, answers, strict=True)
    ]


def write(name: str, rows: list[dict[str, object]]) -> None:
    """Write one JSON object per line, compressed without a timestamp, so that the same rows give the same file."""
    TARGET.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
    (TARGET / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{TARGET / name}: {len(rows)} rows")


if __name__ == "__main__":
    apache_kafka = ApacheKafka.obtain()
    write("batches.jsonl.gz", golden_batches(apache_kafka))
    write("produce.jsonl.gz", golden_answers(apache_kafka))
