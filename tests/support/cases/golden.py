"""Reads vectors that Apache Kafka made: the files of tests/golden with one JSON object per line."""

import gzip
import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[2] / "golden"


def read_golden(name: str) -> list[dict[str, Any]]:
    """The rows of `tests/golden/NAME`, a `.jsonl.gz`."""
    return [json.loads(line) for line in gzip.decompress((GOLDEN / name).read_bytes()).splitlines()]
