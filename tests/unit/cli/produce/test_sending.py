"""From input to a producer: in order, with its topics found first, and bad records named by their place."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.produce.lines import BadInput, Input, JsonReader, LineReader, Reader, Row, build_format
from ottla.cli.produce.options import ProduceOptions
from ottla.cli.produce.sending import Ledger, Sending, Topics
from ottla.client.producer.deliveries import Deliveries
from ottla.client_core.producer.batch import ProducerBatch
from ottla.errors import InvalidTopicError, OttlaError, RecordTooLargeError, UnknownTopicOrPartitionError, exception_of
from ottla.records.kernels import BufferMemory

Given = list[tuple[Any, ...]]


class FakeProducer:
    """Takes records, up to one whose value is `b"bad"`."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.taken: Given = []
        self.flushes = 0
        self.calls = 0
        self.batch = ProducerBatch(("orders", 0), BufferMemory(1000), 100, 100, 0, None)
        self._fault = fault

    async def send_many(self, topic: str, values: Any, keys: Any, *, partition: Any, timestamp: Any, into: Deliveries) -> None:
        self.calls += 1
        for index, (value, key) in enumerate(zip(values, keys or [None] * len(values), strict=True)):
            self._take(topic, value, key, (), partition, timestamp)
            into.places.add(self.batch, index)

    async def send(self, topic: str, value: Any, key: Any, *, partition: Any, timestamp: Any, headers: Any) -> None:
        self._take(topic, value, key, headers, partition, timestamp)

    async def flush(self) -> None:
        self.flushes += 1

    def _take(self, *record: Any) -> None:
        if record[1] is not None and record[1].startswith(b"bad"):
            raise self._fault or RecordTooLargeError("it is too large")
        self.taken.append(record)


class FakeTopics:
    async def of(self, row: Row) -> str:
        return row.topic or "orders"


Run = Callable[..., tuple[FakeProducer, Ledger]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run_it(
        content: bytes, reader: Reader, options: ProduceOptions | None = None, producer: FakeProducer | None = None
    ) -> tuple[FakeProducer, Ledger]:
        (tmp_path / "file").write_bytes(content)
        source = Input([str(tmp_path / "file")], None)
        producer = FakeProducer() if producer is None else producer
        ledger = Ledger()
        sending = Sending(producer, options or ProduceOptions("orders"), reader, ledger, FakeTopics())  # type: ignore[arg-type]
        try:
            asyncio.run(sending.run(source, ""))
        except BadInput as problem:
            problem.add_note(str((producer.taken, ledger.read)))
            raise
        return producer, ledger

    return run_it


def test_lines_go_in_one_call(run: Run) -> None:
    options = ProduceOptions("orders", partition=1, key=b"k", timestamp_ms=7)
    producer, ledger = run(b"a\nb\n", LineReader(build_format({})), options)
    assert producer.taken == [("orders", value, b"k", (), 1, 7) for value in (b"a", b"b")]
    assert (producer.calls, producer.flushes, ledger.read) == (1, 1, 2)


def test_headers_and_sync_go_one_by_one(run: Run) -> None:
    headers = (("h", b"1"),)
    producer, ledger = run(b"a\nb\n", LineReader(build_format({}), headers))
    assert [record[1:4] for record in producer.taken] == [(b"a", None, headers), (b"b", None, headers)]
    assert (producer.calls, ledger.read) == (0, 2)
    producer, _ = run(b"a\nb\n", LineReader(build_format({})), ProduceOptions("orders", sync=True))
    assert (producer.calls, producer.flushes) == (0, 3), "one for each record, and one at the end"


def test_json_goes_where_it_says(run: Run) -> None:
    line = b'{"topic": "t", "partition": 3, "timestamp": 5, "key": "k", "value": "v"}\n'
    producer, ledger = run(line, JsonReader(), ProduceOptions(None))
    assert producer.taken == [("t", b"v", b"k", (), 3, 5)]
    assert ledger.read == 1


@pytest.mark.parametrize(
    ("content", "reader", "line"),
    [
        (b"a\nbad" + b"x" * 100 + b"\nc\n", LineReader(build_format({})), 2),
        (b"a\nb\nbad\nc\n", LineReader(build_format({}), (("h", b"1"),)), 3),
        (b'{"value": "a"}\n\n{"value": "bad"}\n', JsonReader(), 3),
    ],
)
def test_bad_record_is_named_and_those_behind_it_were_not_read(run: Run, content: bytes, reader: Reader, line: int) -> None:
    with pytest.raises(BadInput, match=rf"file, line {line}: it is too large") as caught:
        run(content, reader, ProduceOptions("orders", record_bytes_max=150))
    before = caught.value.__notes__[0]
    assert before.endswith(f", {before.count('orders')})"), "what was taken is what counts as read"


def test_errors_of_the_cluster_have_no_place_in_the_input(run: Run) -> None:
    lost = exception_of(13, "the broker is gone")
    with pytest.raises(type(lost), match=r"^the broker is gone$"):
        run(b"bad\n", LineReader(build_format({})), producer=FakeProducer(lost))
    with pytest.raises(BadInput, match="file, line 1: not a name"):
        run(b'{"value": "bad"}\n', JsonReader(), producer=FakeProducer(InvalidTopicError("not a name")))


class FakeCluster:
    """A cluster that tells of a topic on the second question."""

    def __init__(self, partitions: int = 2) -> None:
        self.settings = SimpleNamespace(retry_backoff_ms=1, retry_backoff_max_ms=1)
        self.world = SimpleNamespace(randomness=SimpleNamespace(below=lambda limit: 0))
        self.asked: list[str] = []
        self._partitions = partitions

    async def metadata(self, topics: list[str], auto_create: bool) -> Any:
        assert auto_create
        self.asked += topics
        if len(self.asked) == 1:
            return SimpleNamespace(topics=[SimpleNamespace(error_code=3, partitions=[])])
        leaders = [SimpleNamespace(leader_id=1) for _ in range(self._partitions)]
        return SimpleNamespace(topics=[SimpleNamespace(error_code=0, partitions=leaders)])

    async def wait(self, backoff: object, deadline_s: float) -> bool:
        return deadline_s > asyncio.get_running_loop().time()


def test_topics_are_awaited_once() -> None:
    async def ask(options: ProduceOptions, *rows: Row) -> list[str]:
        cluster = FakeCluster()
        topics = Topics(cluster, options)  # type: ignore[arg-type]
        found = [await topics.of(row) for row in rows]
        assert cluster.asked == ["a", "a", "b"]
        return found

    rows = [Row(b"v", topic="a"), Row(b"w", topic="a"), Row(b"x", topic="b")]
    assert asyncio.run(ask(ProduceOptions(None), *rows)) == ["a", "a", "b"]


def test_missing_topics_and_partitions_are_refused() -> None:
    async def find(options: ProduceOptions) -> None:
        await Topics(FakeCluster(), options).find("a")  # type: ignore[arg-type]

    with pytest.raises(OttlaError, match="topic a has no partition 2, only 0 to 1"):
        asyncio.run(find(ProduceOptions("a", partition=2)))
    with pytest.raises(UnknownTopicOrPartitionError, match="topic a does not exist"):
        asyncio.run(find(ProduceOptions("a", max_block_ms=-1)))
