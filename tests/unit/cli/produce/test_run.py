"""`ottla produce` against failing brokers: records are stored once and in order, or the failure is reported."""

import asyncio
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.nodes.fake_node import HANG_UP, FakeNode, all_versions
from tests.unit.cli.conftest import RunOttla, describe, metadata_of
from tests.unit.cli.produce.stored_log import QUICK, Log, numbered

from ottla.cli.produce.lines import BadInput, Input, JsonReader, LineReader, Reader, Row, build_format
from ottla.cli.produce.options import ProduceOptions
from ottla.cli.produce.run import STALLED_AFTER_S, Ledger, Progress, Sending, Stored, Topics
from ottla.client.producer.deliveries import Deliveries
from ottla.client_core.producer.batch import ProducerBatch
from ottla.errors import (
    InvalidTopicError,
    KafkaError,
    OttlaError,
    RecordTooLargeError,
    UnknownTopicOrPartitionError,
    exception_of,
)
from ottla.errors.codes import ErrorCode
from ottla.records.batch import BatchView
from ottla.records.compression import Codec
from ottla.records.kernels import NO_HEADERS, BufferMemory
from ottla.wire.messages.metadata import MetadataRequest


@pytest.mark.parametrize(("lines", "text"), [(1, "1 record"), (1200, "1,200 records"), (0, "0 records")])
def test_terminal_shows_how_many_records_are_stored(ottla: RunOttla, node: FakeNode, lines: int, text: str) -> None:
    Log(node)
    said = ottla("produce", "orders", stdin=numbered(lines), err_is_terminal=True)
    assert said.err.splitlines()[-1] == f"{text} stored in orders."


def test_all_records_are_stored_in_order(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node)
    said = ottla("produce", "orders", "--partition", 1, "--batch-size", 100, "--summary", stdin=numbered(1000))
    assert said.rc == 0, said.err
    assert json.loads(said.out) == {
        "topic": "orders",
        "records": 1000,
        "notStored": 0,
        "partitions": [{"topic": "orders", "partition": 1, "records": 1000, "firstOffset": 0, "lastOffset": 999}],
    }
    assert log.values == {1: [b"%d" % number for number in range(1000)]}
    assert {(view.producer_id, view.producer_epoch) for view in log.views} == {(5, 0)}
    assert len(log.views) > 10


@pytest.mark.parametrize(
    "failure", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, HANG_UP]
)
def test_records_are_stored_once_despite_passing_failures(ottla: RunOttla, node: FakeNode, failure: object) -> None:
    """Every third request fails as a whole. Its batches are sent again with the same sequence numbers."""
    count = 0

    def refuse(partition: int, view: BatchView) -> object:
        nonlocal count
        count += 1
        return failure if count % 3 == 0 else 0

    log = Log(node, refuse)
    said = ottla("produce", "orders", "--batch-size", 200, *QUICK, stdin=numbered(500))
    assert said.rc == 0, said.err
    stored = [int(value or b"") for values in log.values.values() for value in values]
    assert sorted(stored) == list(range(500))
    for values in log.values.values():
        assert [int(value or b"") for value in values] == sorted(int(value or b"") for value in values)


def test_records_are_not_stored_twice_when_the_response_is_lost(ottla: RunOttla, node: FakeNode) -> None:
    lost: list[object] = [HANG_UP]

    def store_and_hang_up(partition: int, view: BatchView) -> object:
        if lost:
            log._store(partition, view)
            return lost.pop()
        return 0

    log = Log(node, store_and_hang_up)
    said = ottla("produce", "orders", "--partition", 0, *QUICK, stdin=b"a\nb\n")
    assert (said.rc, log.values) == (0, {0: [b"a", b"b"]})
    assert len(log.views) == 2


def test_batches_that_are_too_large_are_halved_until_they_fit(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node, lambda partition, view: ErrorCode.MESSAGE_TOO_LARGE if view.count > 3 else 0)
    assert ottla("produce", "orders", "--partition", 0, stdin=numbered(50)).rc == 0
    assert log.values[0] == [b"%d" % number for number in range(50)]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ErrorCode.MESSAGE_TOO_LARGE, "MESSAGE_TOO_LARGE"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TOPIC_AUTHORIZATION_FAILED"),
        (ErrorCode.INVALID_RECORD, "it has no key (INVALID_RECORD)"),
    ],
)
def test_lasting_failures_are_reported(ottla: RunOttla, node: FakeNode, code: int, said: str) -> None:
    Log(node, lambda partition, view: code)
    refused = ottla("produce", "orders", "--partition", 0, stdin=b"one\n")
    assert refused.rc == 1
    assert "orders-0" in refused.err
    assert said in refused.err
    assert refused.err.endswith(". 0 records stored in orders, 1 refused\n")
    assert refused.err.count("\n") == 1


def test_retries_end_at_their_limit_or_the_delivery_timeout(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node, lambda partition, view: ErrorCode.NOT_ENOUGH_REPLICAS)
    refused = ottla("produce", "orders", "--message-send-max-retries", 3, *QUICK, stdin=b"one\n")
    assert refused.rc == 1
    assert "NOT_ENOUGH_REPLICAS" in refused.err
    assert len(log.views) == 4
    assert refused.err.endswith(". 0 records stored in orders, 1 not known to be stored\n")
    short = ("--command-property", "delivery.timeout.ms=60", "--request-timeout-ms", 20)
    refused = ottla("produce", "orders", *short, *QUICK, stdin=b"one\n")
    assert refused.rc == 1
    assert "(delivery.timeout.ms)" in refused.err
    assert "replicas" in refused.err, "why the attempts failed"


def test_broker_without_init_producer_id_needs_a_setting(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node)
    node.served = all_versions(InitProducerId=None, Produce=(3, 12))
    refused = ottla("produce", "orders", "--partition", 0, stdin=b"a\n")
    assert (refused.rc, "InitProducerId" in refused.err) == (1, True)
    assert "enable.idempotence=false" in refused.err
    plain = ("--partition", 0, "--command-property", "enable.idempotence=false")
    assert ottla("produce", "orders", *plain, stdin=b"a\n").rc == 0
    assert ottla("produce", "orders", "--partition", 0, "--acks", 1, stdin=b"b\n").rc == 0
    assert [view.producer_id for view in log.views] == [-1, -1]
    assert log.values == {0: [b"a", b"b"]}


def test_acks_0_waits_for_no_response(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node)
    assert ottla("produce", "orders", "--acks", 0, "--partition", 0, "--batch-size", 50, stdin=numbered(100)).rc == 0
    assert log.values[0] == [b"%d" % number for number in range(100)]


def test_memory_limit_holds_with_many_partitions(ottla: RunOttla, node: FakeNode) -> None:
    """Batches of many partitions grow in parallel. None is full when the limit is reached, and they are sent anyway."""
    node.handlers[MetadataRequest] = metadata_of(describe("orders", 50))
    log = Log(node)
    lines = b"".join(b"key%d:%d\n" % (number, number) for number in range(2000))
    said = ottla("produce", "orders", "--key-separator", ":", "--max-memory-bytes", 1000, stdin=lines)
    assert said.rc == 0, said.err
    assert sum(len(values) for values in log.values.values()) == 2000
    assert len(log.values) == 50


def test_topic_that_is_being_created_is_awaited(ottla: RunOttla, node: FakeNode) -> None:
    Log(node)
    later = metadata_of(describe("orders"))
    empty = metadata_of()
    answers = iter([empty, empty, metadata_of(describe("orders", leader=-1))])
    node.handlers[MetadataRequest] = lambda request, version: next(answers, later)(request, version)
    assert ottla("produce", "orders", *QUICK, stdin=b"a\n").rc == 0
    node.handlers[MetadataRequest] = empty
    absent = ottla("produce", "absent", "--max-block-ms", 20, *QUICK, stdin=b"a\n")
    assert (absent.rc, "topic absent does not exist" in absent.err) == (1, True)


def test_partitions_without_a_leader_are_named_with_what_to_do(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[MetadataRequest] = metadata_of(describe("orders", leader=-1))
    said = ottla("produce", "orders", "--max-block-ms", 20, *QUICK, stdin=b"a\n")
    assert said.rc == 1
    assert "orders-0 and orders-1 have no leader now (LEADER_NOT_AVAILABLE): `ottla topics describe --check` says" in said.err


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


def batch_of(count: int) -> ProducerBatch:
    batch = ProducerBatch(("orders", 0), BufferMemory(100_000), 10_000, 10_000, 0, None)
    for _ in range(count):
        assert batch.append(7, None, b"v", NO_HEADERS, None) >= 0
    return batch


def stored_at(count: int, offset: int) -> ProducerBatch:
    batch = batch_of(count)
    batch.complete(offset, -1)
    return batch


def refusal() -> KafkaError:
    return exception_of(ErrorCode.MESSAGE_TOO_LARGE, "too large")


def test_stored_batches_count() -> None:
    ledger = Ledger()
    ledger.read = 6
    ledger.finished(stored_at(3, 10))
    assert (ledger.stored, ledger.pending) == (3, 3)
    ledger.finished(stored_at(2, 4))
    ledger.finished(stored_at(1, -1))
    assert ledger.partitions == {("orders", 0): Stored(6, 4, 12)}
    assert ledger.total("orders") == "6 records stored in orders"
    assert not ledger.failed.is_set()


def test_parts_of_a_split_batch_count_for_it() -> None:
    ledger = Ledger()
    ledger.read = 4
    batch = batch_of(4)
    batch.seal(Codec.NONE, None, is_transactional=False)
    parts = batch.split(61 + 20)
    assert len(parts) > 1
    for number, part in enumerate(parts[:-1]):
        part.complete(number * 10, -1)
    parts[-1].fail(refusal())
    batch.finish()
    for each in (*parts, batch):
        ledger.finished(each)
    assert (ledger.stored, ledger.refused, ledger.pending) == (4 - parts[-1].count, parts[-1].count, 0)


def test_refused_and_unknown_are_told_apart() -> None:
    ledger = Ledger()
    ledger.read = 7
    endings = [refusal(), exception_of(ErrorCode.REQUEST_TIMED_OUT, "late"), refusal()]
    for number, error in enumerate(endings):
        batch = batch_of(2)
        batch.is_uncertain = number == 2
        batch.fail(error)
        ledger.finished(batch)
    assert (ledger.refused, ledger.lost, ledger.pending) == (2, 4, 1)
    assert ledger.failure is endings[0]
    assert ledger.failed.is_set()
    assert ledger.total("orders") == "0 records stored in orders, 2 refused, 5 not known to be stored"


def test_failure_names_what_is_wrong_with_a_record() -> None:
    ledger = Ledger()
    batch = batch_of(3)
    error = exception_of(ErrorCode.INVALID_RECORD, "some record is bad")
    error.record_errors = ((1, "it has no key"),)
    batch.fail(error)
    ledger.finished(batch)
    assert "it has no key" in str(ledger.failure)


class Terminal(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def screen(self) -> str:
        """What the last line shows."""
        return self.getvalue().split("\n")[-1].split("\r")[-1].rstrip()


class Counts(Ledger):
    """A ledger with numbers that the test sets."""

    waiting = 0

    @property
    def pending(self) -> int:
        return self.waiting


Make = Callable[..., tuple[Terminal, Counts, Input, Progress]]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    """Makes a progress on a terminal or pipe, called within the test, because pytest sets standard error when it starts."""

    def make_one(is_sized: bool = True, is_terminal: bool = True) -> tuple[Terminal, Counts, Input, Progress]:
        screen = Terminal(is_terminal)
        monkeypatch.setattr("sys.stderr", screen)
        return screen, *make_progress(tmp_path, is_sized)

    return make_one


def make_progress(tmp_path: Path, is_sized: bool) -> tuple[Counts, Input, Progress]:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 1000)
    ledger = Counts()
    source = Input([str(file) if is_sized else "/dev/null"], None)
    return ledger, source, Progress(ledger, source)


def test_percent_is_of_what_is_stored(make: Make) -> None:
    terminal, ledger, source, progress = make()
    ledger.read, ledger.stored, source.read_bytes = 10, 5, 800
    progress.look(progress._start_s + 2)
    assert terminal.screen() == " 40 %  5 records stored, 2/s, 200 bytes/s"
    progress.clear()
    assert terminal.screen() == ""


def test_no_percent_without_a_size(make: Make) -> None:
    terminal, ledger, source, progress = make(is_sized=False)
    ledger.read, ledger.stored, source.read_bytes = 10, 10, 800
    progress.look(progress._start_s + 1)
    assert terminal.screen() == "10 records stored, 10/s, 800 bytes/s"


def test_no_line_beside_a_prompt(make: Make) -> None:
    terminal, ledger, source, _ = make()
    ledger.read, ledger.stored, source.read_bytes = 10, 10, 800
    progress = Progress(ledger, source, has_prompt=True)
    progress.look(progress._start_s + 1)
    assert terminal.getvalue() == ""


def test_lost_broker_and_its_return_are_told(make: Make) -> None:
    terminal, ledger, _, progress = make()
    ledger.read, ledger.waiting, ledger.stored = 10, 5, 5
    start_s = progress._start_s
    progress.look(start_s + 1)
    ledger.stored = 6
    progress.client_says("the broker is lost")
    progress.look(start_s + 31)
    assert "again" not in terminal.getvalue(), "the sixth record was stored before"
    assert "ottla: the broker is lost\n" in terminal.getvalue()
    assert terminal.screen().endswith("waiting for 30 s")
    ledger.stored, ledger.waiting = 10, 0
    progress.look(start_s + 32)
    assert "ottla: records are being stored again\n" in terminal.getvalue()
    assert "waiting" not in terminal.screen()
    progress.is_ending = True
    progress.client_says("closed too early")
    assert "closed too early" not in terminal.getvalue()


def test_silence_is_told_once_also_without_a_terminal(make: Make) -> None:
    pipe, ledger, _, progress = make(is_terminal=False)
    ledger.read = ledger.waiting = 3
    for seconds in (1.0, STALLED_AFTER_S, STALLED_AFTER_S + 1):
        progress.look(progress._start_s + seconds)
    assert pipe.getvalue() == "ottla: no answer for 5 s to 3 records: the brokers are slow, or cannot be reached\n"


def test_waiting_for_input_is_no_silence(make: Make) -> None:
    terminal, _, _, progress = make()
    progress.look(progress._start_s + 100)
    assert "no answer" not in terminal.getvalue()


def test_interrupt_says_what_is_waited_for(make: Make) -> None:
    terminal, ledger, _, progress = make()
    progress.interrupted(5)
    assert terminal.getvalue() == ""
    ledger.waiting = 2
    progress.interrupted(5)
    assert terminal.getvalue() == "ottla: ending: up to 5 s for 2 records to be stored; Ctrl-C ends at once\n"
