"""The README's example on Spark, as it is printed there but for address and folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ottla import Consumer, Producer
from ottla.testing import Broker

README = Path(__file__).parents[2] / "README.md"


def test_the_example_writes_large_orders_exactly_once(spark: Any, shared_broker: Broker, tmp_path: Path) -> None:
    (example,) = [
        each
        for each in re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
        if "spark." in each
    ]
    where = shared_broker.bootstrap_servers
    shared_broker.create_topic("orders", partitions=1)
    shared_broker.create_topic("large-orders", partitions=1)
    names: dict[str, Any] = {"spark": spark}
    exec(compile(example.replace("localhost:9092", where).replace("checkpoints/", f"{tmp_path}/"), "README.md", "exec"), names)
    query = names["query"]
    try:
        # A stream starts at the end of its topics: what was written before its first batch is not read.
        while not query.recentProgress:
            query.processAllAvailable()
        with Producer(where) as producer:
            producer.send_many("orders", [b"99.5", b"100.5", b"250"], keys=[b"a", b"b", b"c"]).wait(30)
        query.processAllAvailable()
        with Consumer(where, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
            consumer.assign(("large-orders", 0))
            found: list[Any] = []
            for _ in range(60):
                found += consumer.poll(1)
                if len(found) >= 2:
                    break
        assert [(record.key, record.value) for record in found] == [(b"b", b"100.5"), (b"c", b"250")]
    finally:
        query.stop()
