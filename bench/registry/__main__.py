"""Measures the schema registry and the Avro serializers, and prints a table. `make bench-registry`, about a minute.

The registry runs as people run it: `ottla registry` in a process of its own, in front of one broker in another. The serializers
are called in this process, beside confluent-kafka's with the same schema and the same dicts; each figure is the best of several
rounds, taken in turn. Limits are checked by processor time, which other programs on the machine change little.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from ottla import Producer
from ottla.registry import records
from ottla.registry.records import Content, Stored
from ottla.schemas import AvroSerializer, Schema, SchemaRegistry
from ottla.testing import Broker

ROUNDS = 5
THREADS = 4
STARTUP_LIMIT_S = 5.0
RATIO_AT_LEAST = 3.0

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
BASKET = {
    "type": "record",
    "name": "Basket",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "lines", "type": {"type": "array", "items": ORDER}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "PAID"]}},
    ],
}
order = {"id": 4711, "customer": "Ada", "amount": 3.5, "note": None}
basket = {"id": 12, "customer": "Ada", "lines": [order] * 3, "tags": {"shop": "north"}, "state": "PAID"}


@contextmanager
def registry(servers: str) -> Any:
    """`ottla registry` in a process of its own: its address, and how long it took until it served."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "ottla", "registry", "-b", servers, "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        url = json.loads(process.stdout.readline())["url"]
        yield url, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


def text(number: int, *more: str) -> str:
    fields = [{"name": "a", "type": "int"}, *({"name": each, "type": "int", "default": 0} for each in more)]
    return json.dumps({"type": "record", "name": f"R{number}", "fields": fields}, separators=(",", ":"))


def per_second(url: str, count: int, call: Callable[[SchemaRegistry, int], object]) -> float:
    """Calls per second by several clients."""
    clients = [SchemaRegistry(url, timeout_s=60) for _ in range(THREADS)]

    def run(place: int) -> None:
        for number in range(place, count, THREADS):
            call(clients[place], number)

    began = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(run, range(THREADS)))
    return count / (time.perf_counter() - began)


def fill(servers: str, count: int) -> None:
    """Write schemas into the topic as a registry does."""
    with Producer(servers) as producer:
        for number in range(1, count + 1):
            stored = Stored(f"subject-{number // 4}", number % 4 + 1, number, Content("AVRO", text(number)))
            producer.send(records.TOPIC, records.schema_value(stored), key=records.schema_key(stored.subject, stored.version))


def seconds_each(call: Callable[[], object], count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - began) / count


def serializers(url: str, count: int) -> list[tuple[str, float, float]]:
    """(what, our records per second, theirs)."""
    rows = []
    for name, schema, value in (("4 fields", ORDER, order), ("17 values in 4 records", BASKET, basket)):
        context = SerializationContext(name.replace(" ", "-"), MessageField.VALUE)
        theirs = TheirSerializer(SchemaRegistryClient({"url": url}), json.dumps(schema))
        ours = AvroSerializer(url, schema)
        assert ours.serialize(context.topic, [], value) == theirs(value, context)
        mine, other = [], []
        for _ in range(ROUNDS):
            mine.append(seconds_each(lambda: ours.serialize(context.topic, [], value), count))  # noqa: B023
            other.append(seconds_each(lambda: theirs(value, context), count))  # noqa: B023
        rows.append((name, 1 / min(mine), 1 / min(other)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    scale = 10 if parser.parse_args().quick else 1
    rows: list[tuple[str, str]] = []
    ratios: list[float] = []
    with Broker(process=True) as broker, registry(broker.bootstrap_servers) as (url, start_s):
        rows.append(("start with an empty topic", f"{start_s:.2f} s"))
        client = SchemaRegistry(url, timeout_s=60)
        client.register("s", Schema(text(0)))
        count = 4_000 // scale
        rate = per_second(url, count, lambda client, _: client.call("GET", "/schemas/ids/1"))
        rows.append(("lookups by id", f"{rate:,.0f} /s"))
        rate = per_second(url, count, lambda client, _: client.call("POST", "/subjects/s", {"schema": text(0)}))
        rows.append(("lookups by text", f"{rate:,.0f} /s"))
        count = 1_000 // scale
        rate = per_second(url, count, lambda client, number: client.register(f"n{number}", Schema(text(number + 1))))
        rows.append(("registrations of new schemas", f"{rate:,.0f} /s"))
        rate = per_second(url, count, lambda client, number: client.check("s", Schema(text(0, f"f{number}"))))
        rows.append(("compatibility checks of new schemas", f"{rate:,.0f} /s"))
        for name, ours, theirs in serializers(url, 20_000 // scale):
            told = f"{ours:,.0f} /s, confluent-kafka {theirs:,.0f} /s: {ours / theirs:.1f} ×"
            rows.append((f"Avro serializer, dicts of {name}", told))
            ratios.append(ours / theirs)
    with Broker(process=True) as broker:
        broker.create_topic(records.TOPIC, config={"cleanup.policy": "compact"})
        count = 100_000 // scale
        fill(broker.bootstrap_servers, count)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with registry(broker.bootstrap_servers) as (url, start_s):
            assert len(SchemaRegistry(url).subjects()) == count // 4 + 1
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        rows.append((f"start with {count:,} schemas", f"{start_s:.2f} s, {cpu_s:.2f} s of processor time"))
    width = max(len(name) for name, _ in rows)
    for name, told in rows:
        print(f"{name:<{width}}  {told}")
    assert min(ratios) >= RATIO_AT_LEAST, f"a serializer is only {min(ratios):.1f} × as fast"
    assert cpu_s <= STARTUP_LIMIT_S, f"a start takes {cpu_s:.2f} s"


if __name__ == "__main__":
    main()
