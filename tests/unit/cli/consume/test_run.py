"""`ottla consume` against brokers that lose leadership, fail, and evict sessions."""

import time

import pytest
from tests.support.nodes.fake_node import HANG_UP, FakeNode, all_versions
from tests.unit.cli.conftest import ORDERS_ID, RunOttla, describe, metadata_of

from ottla.cli.consume.command import parse_partitions
from ottla.errors.codes import ErrorCode
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.metadata import MetadataRequest

QUICK = ("--command-property", "retry.backoff.ms=1", "--command-property", "retry.backoff.max.ms=2")


class Broker:
    """Two partitions of ten records each, from offset 5 on; one record per response; keeps real fetch sessions."""

    def __init__(self, node: FakeNode) -> None:
        self.failures: list[object] = []
        self.epochs: list[int] = []
        self.session: dict[int, int] = {}
        self.epoch = 0
        self.has_sessions = True
        node.handlers |= {FetchRequest: self.fetch, ListOffsetsRequest: self.list_offsets}

    def list_offsets(self, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        found = [
            ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=5 if each.timestamp == -2 else 15)
            for each in request.topics[0].partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=found)])

    def fetch(self, request: FetchRequest, version: int) -> object:
        if request.session_epoch == -1:  # the consumer closes its session
            return FetchResponse()
        self.epochs.append(request.session_epoch)
        failure = self.failures.pop(0) if self.failures else None
        if failure is HANG_UP:
            return HANG_UP
        if isinstance(failure, int) and failure in (
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ):
            return FetchResponse(error_code=failure)
        if request.session_epoch == 0:
            self.session, self.epoch = {}, 0
        else:
            assert request.session_epoch == self.epoch
        for topic in request.topics:
            assert (topic.topic_id if version >= 13 else topic.topic) == (ORDERS_ID if version >= 13 else "orders")
            self.session |= {each.partition: each.fetch_offset for each in topic.partitions}
        self.epoch += 1
        code = failure if isinstance(failure, int) else 0
        data = [each for index, offset in self.session.items() if (each := self._read(index, offset, code)) is not None]
        answer = FetchableTopicResponse(topic="orders", topic_id=ORDERS_ID, partitions=data)
        return FetchResponse(session_id=77 if self.has_sessions else 0, responses=[answer] if data else [])

    def _read(self, index: int, offset: int, code: int) -> PartitionData | None:
        if code or not 5 <= offset <= 15:
            return PartitionData(partition_index=index, error_code=code or ErrorCode.OFFSET_OUT_OF_RANGE, records=b"")
        if offset == 15:
            return None
        batch = build_batch([Record(offset, 1000, None, b"%d/%d" % (index, offset))])
        return PartitionData(partition_index=index, high_watermark=15, records=bytes(batch))


@pytest.fixture
def broker(node: FakeNode) -> Broker:
    return Broker(node)


EVERYTHING = sorted(f"{index}/{offset}" for index in (0, 1) for offset in range(5, 15))


def test_all_records_are_read_once_in_one_session(ottla: RunOttla, broker: Broker) -> None:
    said = ottla("consume", "orders", "--from-beginning", "--until-end")
    assert (said.rc, sorted(said.lines)) == (0, EVERYTHING)
    assert broker.epochs[:4] == [0, 1, 2, 3]


def test_brokers_without_sessions_and_old_brokers_are_read(ottla: RunOttla, broker: Broker, node: FakeNode) -> None:
    broker.has_sessions = False
    assert sorted(ottla("consume", "orders", "--from-beginning", "--until-end").lines) == EVERYTHING
    assert set(broker.epochs) == {0}
    node.served = all_versions(Fetch=(4, 12))
    assert sorted(ottla("consume", "orders", "--from-beginning", "--until-end").lines) == EVERYTHING


@pytest.mark.parametrize(
    "failure",
    [
        HANG_UP,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
)
def test_records_are_read_once_despite_passing_failures(ottla: RunOttla, broker: Broker, failure: object) -> None:
    broker.failures = [None, failure, None, None, failure, failure]
    said = ottla("consume", "orders", "--from-beginning", "--until-end", *QUICK)
    assert (said.rc, sorted(said.lines)) == (0, EVERYTHING), said.err
    assert ("Trying again" in said.err) == (failure is HANG_UP)


def test_lasting_failures_end_the_command(ottla: RunOttla, broker: Broker, node: FakeNode) -> None:
    broker.failures = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    refused = ottla("consume", "orders", "--from-beginning")
    assert (refused.rc, "TOPIC_AUTHORIZATION_FAILED" in refused.err) == (1, True)
    broker.failures = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    refused = ottla("consume", "orders", "--from-beginning")
    assert (refused.rc, "CLUSTER_AUTHORIZATION_FAILED" in refused.err) == (1, True)


def test_topic_deleted_while_it_is_read_is_reported(ottla: RunOttla, broker: Broker, node: FakeNode) -> None:
    unpatched = broker.fetch
    answers = 0

    def fetch(request: FetchRequest, version: int) -> object:
        nonlocal answers
        answers += 1
        if answers == 3:
            node.handlers[MetadataRequest] = metadata_of()
            broker.failures = [ErrorCode.UNKNOWN_TOPIC_ID] * 1000  # a deleted topic stays deleted
        return unpatched(request, version)

    node.handlers[FetchRequest] = fetch
    said = ottla("consume", "orders", "--from-beginning", *QUICK)
    assert said.rc == 1
    assert "topic orders does not exist" in said.err
    assert "Processed a total of 4 messages" in said.err


def test_partition_added_later_is_read_from_its_first_record(ottla: RunOttla, broker: Broker, node: FakeNode) -> None:
    unpatched = broker.fetch

    def fetch(request: FetchRequest, version: int) -> object:
        node.handlers[MetadataRequest] = metadata_of(describe("orders", partitions=3))
        return unpatched(request, version)

    node.handlers[FetchRequest] = fetch
    said = ottla("consume", "orders", "--max-messages", 10, "--command-property", "metadata.max.age.ms=1")
    assert (said.rc, said.lines) == (0, [f"2/{offset}" for offset in range(5, 15)])
    assert said.err.count("partition orders-2 is new") == 1
    alone = ottla("consume", "orders", "--partition", 1, "--timeout-ms", 100, "--command-property", "metadata.max.age.ms=1")
    assert (alone.rc, alone.lines) == (0, [])


def test_offset_out_of_range_is_reset_with_a_warning(ottla: RunOttla, broker: Broker) -> None:
    low = ottla(
        "consume",
        "orders",
        "--partition",
        0,
        "--offset",
        2,
        "--max-messages",
        1,
        "--command-property",
        "auto.offset.reset=earliest",
    )
    assert low.lines == ["0/5"]
    assert "partition orders-0 has no offset 2: going on from the first, 5" in low.err
    high = ottla("consume", "orders", "--partition", 0, "--offset", 99, "--timeout-ms", 50)
    assert (high.rc, high.lines) == (0, [])
    assert "going on from the end, 15" in high.err


def test_limits_end_the_command(ottla: RunOttla, broker: Broker) -> None:
    assert len(ottla("consume", "orders", "--from-beginning", "--max-messages", 7).lines) == 7
    none = ottla("consume", "orders", "--from-beginning", "--max-messages", 0)
    assert (none.lines, "Processed a total of 0 messages" in none.err) == ([], True)
    assert ottla("consume", "orders", "--partition", 1, "--offset", 12, "--until-end").lines == ["1/12", "1/13", "1/14"]
    quiet = ottla("consume", "orders", "--timeout-ms", 50)
    assert (quiet.rc, quiet.lines) == (0, [])


def test_damaged_batch_is_reported_with_its_offset(ottla: RunOttla, node: FakeNode, broker: Broker) -> None:
    unpatched = broker.fetch

    def damaged(request: FetchRequest, version: int) -> object:
        answer = unpatched(request, version)
        assert isinstance(answer, FetchResponse)
        for data in (each for topic in answer.responses for each in topic.partitions):
            data.records = bytes(data.records or b"")[:-1] + b"?"  # type: ignore[arg-type]
        return answer

    node.handlers[FetchRequest] = damaged
    said = ottla("consume", "orders", "--from-beginning")
    assert said.rc == 1
    assert "cannot be read on from offset 5" in said.err
    assert "CRC" in said.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name the topic to read"),
        (("a", "--topic", "b"), "name the topic to read"),
        (("a", "--offset", "3"), "--offset with a number needs --partition"),
        (("a", "--offset", "-1", "--partition", "0"), "--offset must be earliest, latest, or a number"),
        (("a", "--offset", "soon"), "--offset must be earliest, latest, or a number"),
        (("a", "--offset", "latest", "--from-beginning"), "both say where to start"),
        (("a", "--from-time", "1h", "--from-beginning"), "both say where to start"),
        (("a", "--partition", "x"), "--partition takes numbers"),
        (("--include", "("), "is not a regular expression"),
        (("a", "--command-property", "auto.offset.reset=none"), "auto.offset.reset must be"),
        (("a", "--command-property", "group.id=g", "--group", "h"), "name different groups"),
        (("a", "--group", "g", "--partition", "0"), "the group chooses the partitions"),
        (("a", "--group", "g", "--from-time", "1h"), "ottla groups reset-offsets g"),
        (("a", "--command-property", "fetch.min.bytes=many"), "fetch.min.bytes"),
        (("a", "--formatter", "x.Y"), "there is no formatter"),
    ],
)
def test_wrong_usage(ottla: RunOttla, arguments: tuple[str, ...], said: str) -> None:
    refused = ottla("consume", *arguments)
    assert refused.rc == 2
    assert said in " ".join(refused.err.split())


def test_partition_ranges_are_parsed() -> None:
    assert parse_partitions(()) is None
    assert parse_partitions(("0", "2-4,7")) == {0, 2, 3, 4, 7}


@pytest.mark.parametrize("start", [("--from-beginning",), ("--from-time", "0"), ("--offset", "earliest")])
def test_partition_without_a_leader_holds_up_neither_the_others_nor_the_timeout(
    ottla: RunOttla, broker: Broker, node: FakeNode, start: tuple[str, ...]
) -> None:
    topic = describe("orders")
    topic.partitions[1].leader_id = -1
    node.handlers[MetadataRequest] = metadata_of(topic)
    began_s = time.monotonic()
    said = ottla("consume", "orders", *start, "--timeout-ms", 500, *QUICK)
    expected = [] if start[0] == "--from-time" else [f"0/{offset}" for offset in range(5, 15)]
    assert (said.rc, said.lines) == (0, expected)
    assert time.monotonic() - began_s < 30


def test_missing_leader_is_awaited(ottla: RunOttla, broker: Broker, node: FakeNode) -> None:
    """The leader is known when offsets are looked up, then missing for two responses."""
    led, leaderless = metadata_of(describe("orders")), metadata_of(describe("orders", leader=-1))
    answers = iter([led, led, led, led, leaderless, leaderless])
    node.handlers[MetadataRequest] = lambda request, version: next(answers, led)(request, version)
    said = ottla("consume", "orders", "--from-beginning", "--until-end", *QUICK)
    assert (said.rc, sorted(said.lines)) == (0, EVERYTHING)


@pytest.fixture(autouse=True)
def empty(node: FakeNode) -> None:
    """Both partitions are empty, with offset 5 next; no record is late enough for any time."""

    def answer(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        found = [
            ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=5 if each.timestamp < 0 else -1)
            for each in request.topics[0].partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=found)])

    node.handlers[ListOffsetsRequest] = answer


@pytest.mark.parametrize("flags", [("--from-beginning",), ("--from-time", "1h"), ("--offset", "5", "--partition", "0"), ()])
def test_empty_partitions_are_at_their_end(ottla: RunOttla, flags: tuple[str, ...]) -> None:
    said = ottla("consume", "orders", "--until-end", *flags)
    assert (said.rc, said.err) == (0, "Processed a total of 0 messages\n")


@pytest.mark.parametrize(("reset", "place"), [("earliest", "first"), ("latest", "end")])
@pytest.mark.parametrize("offset", ["4", "6"])
def test_offset_outside_the_log_is_replaced(ottla: RunOttla, offset: str, reset: str, place: str) -> None:
    flags = ("--partition", "1", "--offset", offset, "--until-end", "--command-property", f"auto.offset.reset={reset}")
    said = ottla("consume", "orders", *flags)
    assert f"partition orders-1 has no offset {offset}: going on from the {place}, 5" in said.err


def test_missing_topics_and_partitions_are_named(ottla: RunOttla) -> None:
    assert "topic absent does not exist" in ottla("consume", "orders", "absent").err
    assert "no topic matches 'x.*'" in ottla("consume", "--include", "x.*").err
    assert ottla("consume", "orders", "--partition", "2").rc == 1
