"""docs/spark.md: its examples run as they are printed, but for addresses and folders, and its tables name all options."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.postgres_server import PostgresServer

from ottla import Admin, Producer
from ottla.schemas import AvroDeserializer, AvroSerializer
from ottla.spark.decoding.decode import FORMATS, MODES
from ottla.spark.sink import options as sink_options
from ottla.spark.source import options as source_options
from ottla.spark.tables import delta, iceberg
from ottla.spark.tables.postgres import sink as postgres_sink
from ottla.spark.tables.postgres import source as postgres_source
from ottla.testing import Broker

PAGES = Path(__file__).parents[2] / "docs"
PAGE = (PAGES / "spark.md").read_text(encoding="utf-8")
SINK_PAGE = (PAGES / "spark-sink.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
GOOD, BAD = '{{"order_id": {}, "amount": 2.5}}', "no JSON"
Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def page_broker(shared_broker: Broker) -> Broker:
    """The shared broker with the topics of the page: two good orders and a bad one."""
    for name in ("page.orders", "orders.dead", "orders.clean", "out"):
        shared_broker.create_topic(name)
    for key, value in (("a", GOOD.format(1)), ("b", BAD), ("a", GOOD.format(2))):
        shared_broker.produce("page.orders", value, key=key)
    return shared_broker


@pytest.fixture
def load(spark: Any, page_broker: Broker) -> Callable[[Any], Any]:
    """Reads the orders with `spark.read` or `spark.readStream`."""

    def loaded(reader: Any) -> Any:
        where = {"kafka.bootstrap.servers": page_broker.bootstrap_servers, "startingOffsets": "earliest"}
        return reader.format("ottla").options(**where, subscribe="page.orders").load()

    return loaded


@pytest.fixture
def run(spark: Any, page_broker: Broker, tmp_path: Path) -> Iterator[Run]:
    """Runs the one example that contains `marker`, with the names that the text around it explains."""
    made: dict[str, Any] = {}

    def run_example(marker: str, *, replace: dict[str, str] | None = None, **names: Any) -> dict[str, Any]:
        (example,) = [each for each in EXAMPLES if marker in each]
        texts = {
            "localhost:9092": page_broker.bootstrap_servers,
            '"checkpoint"': f'"{tmp_path}/checkpoint"',
            '"checkpoints/': f'"{tmp_path}/',
            '"data/': f'"{tmp_path}/',
            **(replace or {}),
        }
        for old, new in texts.items():
            example = example.replace(old, new)
        made.update({"spark": spark, **names})
        exec(compile(example, "docs/spark.md", "exec"), made)
        return made

    yield run_example
    if "query" in made:
        made["query"].stop()


def test_source_example(run: Run) -> None:
    made = run("key binary, offset long", replace={'"orders"': '"page.orders"'})
    assert [row.offset for row in made["orders"].orderBy("offset").collect()] == [0, 1, 2]
    assert [(bytes(row.key), row.offset) for row in made["keys"].orderBy("offset").collect()] == [
        (b"a", 0),
        (b"b", 1),
        (b"a", 2),
    ]


def test_decoding_example(spark: Any, load: Callable[[Any], Any], run: Run, page_broker: Broker) -> None:
    found = run("dead_letters={", stream=load(spark.read))["rows"]
    assert found.columns == ["key", "order_id", "amount", "placed", "timestamp"]
    assert sorted((row.key, row.order_id, row.amount) for row in found.collect()) == [("a", 1, 2.5), ("a", 2, 2.5)]
    (dead,) = page_broker.records("orders.dead")
    assert (dead.key, dead.value) == (b"b", BAD.encode())


def test_example_of_good_and_bad_rows(spark: Any, load: Callable[[Any], Any], run: Run) -> None:
    made = run("split_errors(decoded)", stream=load(spark.read))
    assert sorted(row.value.order_id for row in made["good"].collect()) == [1, 2]
    assert [bytes(row._error.value) for row in made["bad"].collect()] == [BAD.encode()]
    assert sorted(row.topic for row in made["both"].collect()) == ["orders.clean", "orders.clean", "orders.dead"]


def test_registry_example(run: Run, page_broker: Broker) -> None:
    url = page_broker.schema_registry_url
    fields = [{"name": "city", "type": "string"}, {"name": "weight", "type": "double"}]
    serializer = AvroSerializer(url, {"type": "record", "name": "Shipment", "fields": fields})
    for name in ("shipments", "cities"):
        page_broker.create_topic(name)
    with Producer(page_broker.bootstrap_servers, value_serializer=serializer) as producer:
        producer.send("shipments", {"city": "Oslo", "weight": 2.5}, key=b"k").result(30)
    run("schema.registry.url", replace={"http://localhost:8081": url})["query"].processAllAvailable()
    (record,) = page_broker.records("cities")
    assert record.value is not None
    assert AvroDeserializer(url).deserialize("cities", (), record.value) == {"city": "Oslo", "grams": 2500.0}
    assert record.key == b"k"
    for name in ("shipments", "cities"):  # other pages have these names, too
        page_broker.delete_topic(name)


@pytest.mark.slow
def test_listener_example(spark: Any, load: Callable[[Any], Any], run: Run, page_broker: Broker) -> None:
    def stop_later() -> None:
        # The example waits for its query, as a service does.
        try:
            page_broker.await_records("out", 3, timeout=120)
        finally:
            for query in spark.streams.active:
                query.processAllAvailable()
                query.stop()

    stopping = threading.Thread(target=stop_later)
    stopping.start()
    try:
        run("ProgressListener(", rows=load(spark.readStream).select("key", "value"))
    finally:
        stopping.join()
    with Admin(page_broker.bootstrap_servers) as admin:
        committed = admin.list_consumer_group_offsets(["orders-pipeline"])["orders-pipeline"]
    assert {each.topic: offset.offset for each, offset in committed.items() if offset is not None} == {"page.orders": 3}


@pytest.mark.slow
def test_table_example(spark: Any, load: Callable[[Any], Any], run: Run, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    made = run("ottla_delta", rows=load(spark.readStream).selectExpr("cast(key as string) as key", "offset"))
    assert made["query"].awaitTermination(120)
    rows = deltalake.DeltaTable(tmp_path / "orders").to_pyarrow_table().to_pylist()
    assert sorted((row["key"], row["offset"]) for row in rows) == [("a", 0), ("a", 2), ("b", 1)]


@pytest.mark.slow
def test_upsert_example(spark: Any, load: Callable[[Any], Any], run: Run, postgres: PostgresServer) -> None:
    counts = load(spark.readStream).selectExpr("cast(key as string) as city").groupBy("city").count()
    address = {"postgresql://localhost/shop": postgres.url, '"counts"': '"page_counts"'}
    query = run("each_batch(", replace=address, counts=counts)["query"]
    query.processAllAvailable()
    assert postgres.execute("SELECT city, count FROM page_counts ORDER BY city") == [("a", 2), ("b", 1)]


def test_every_example_of_the_page_is_run() -> None:
    assert len(EXAMPLES) == 8, "seven here, and one in shipping/test_on_cluster.py"


def test_every_format_mode_and_option_is_on_the_page() -> None:
    words = set(re.findall(r"`([\w.*-]+)`", PAGE))
    options = {*postgres_sink.NAMES, *postgres_source.NAMES, *delta.NAMES, *iceberg.NAMES, *source_options.NAMES}
    assert {*FORMATS, *MODES, *options} - words == set()
    assert set(sink_options.NAMES) - set(re.findall(r"`([\w.*-]+)`", SINK_PAGE)) == set()
