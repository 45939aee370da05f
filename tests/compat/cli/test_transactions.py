"""`ottla transactions` compared with kafka-transactions, on one cluster."""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from tests.compat.cli.conftest import RunOttla, RunTool
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true

from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TIMEOUT_S = 60
Open = Callable[[str], Any]
"""Opens a transaction with one record in partition 0 of the topic. Its transactional id is the topic's name."""


@pytest.fixture
def open_transaction(bootstrap: str, ottla: RunOttla) -> Iterator[Open]:
    opened: list[Any] = []

    def open_one(topic: str) -> Any:
        assert ottla("topics", "create", topic, "--if-not-exists").rc == 0
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "log_level": 0})
        opened.append(producer)
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        producer.produce(topic, b"x", partition=0)
        assert producer.flush(TIMEOUT_S) == 0
        return producer

    yield open_one
    for producer in opened:
        producer.purge()


def lines(text: str) -> list[str]:
    """The printed cells without padding and durations, in sorted lines."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.rstrip("\t").split("\t")]
        if len(cells) == 9 and re.fullmatch(r"\d+", cells[7]):
            cells[7] = "DURATION"
        found.append("\t".join(cells))
    return sorted(found)


def same(ottla: RunOttla, kafka: RunTool, *flags: object) -> list[list[str]]:
    """Check that both tools print the same. Returns the cells without the headings."""
    ours, theirs = ottla("transactions", *flags), kafka("transactions", *flags)
    assert (ours.rc, lines(ours.out)) == (theirs.rc, lines(theirs.out)), (flags, ours.err, theirs.err)
    assert ours.lines[0] == theirs.lines[0]
    return [[cell.strip() for cell in line.rstrip("\t").split("\t")] for line in ours.lines[1:]]


def state(ottla: RunOttla, transactional_id: str) -> str:
    (shown,) = json.loads(ottla("transactions", "describe", transactional_id, "--json").out)
    return str(shown["transactionState"])


def test_open_transaction_is_shown_alike(
    ottla: RunOttla, kafka: RunTool, bootstrap: str, topic: str, open_transaction: Open
) -> None:
    producer = open_transaction(topic)
    where = ("--bootstrap-server", bootstrap)
    for flags in (
        ("list",),
        ("list", "--transactional-id-pattern", f"{topic[:4]}.*"),
        ("list", "--transactional-id-pattern", "nothing"),
        ("list", "--duration-filter", "-1"),
        ("list", "--duration-filter", "600000"),
        ("describe", "--transactional-id", topic),
        ("describe-producers", "--topic", topic, "--partition", "0"),
        ("describe-producers", "--topic", topic, "--partition", "0", "--broker-id", "1"),
        ("find-hanging", "--topic", topic),
        ("find-hanging", "--topic", topic, "--partition", "0", "--max-transaction-timeout", "0"),
        ("find-hanging", "--broker-id", "1"),
    ):
        same(ottla, kafka, *flags)
        assert ottla("transactions", *where, *flags).rc == 0
    listed = {each[0]: each for each in same(ottla, kafka, "list")}
    assert listed[topic][3] == "Ongoing"
    (shown,) = same(ottla, kafka, "describe", "--transactional-id", topic)
    assert (shown[1], shown[4], shown[8]) == (topic, "Ongoing", f"{topic}-0")
    (written,) = json.loads(ottla("transactions", "describe-producers", f"{topic}:0", "--json").out)
    assert written["currentTransactionStartOffset"] == 0
    assert topic in ottla("transactions", "list", "--state", "ongoing").out
    producer.commit_transaction(TIMEOUT_S)
    await_true(lambda: state(ottla, topic) == "CompleteCommit", "the transaction to be complete")
    same(ottla, kafka, "describe", "--transactional-id", topic)
    same(ottla, kafka, "describe-producers", "--topic", topic, "--partition", "0")
    assert topic not in ottla("transactions", "list", "--state", "ongoing,prepare-commit").out


def leave_hanging(bootstrap: str, topic: str, producer_id: int) -> None:
    """Write a record of a transaction that began twenty minutes ago and that no coordinator knows."""
    batch = make_batch(b"ghost", timestamp=int((time.time() - 1200) * 1000), producer=(producer_id, 3, 0), transactional=True)
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=bytes(batch))])
    request = ProduceRequest(transactional_id="ghost", acks=-1, timeout_ms=30_000, topic_data=[data])
    with RawClient.to(bootstrap) as client:
        (response,) = client.request(request, 11).responses
    assert response.partition_responses[0].error_code == 0, response


@pytest.mark.parametrize("by", ["start offset", "producer"])
def test_a_hanging_transaction_is_found_and_aborted(
    ottla: RunOttla, kafka: RunTool, bootstrap: str, topic: str, by: str
) -> None:
    assert ottla("topics", "create", topic, "--partitions", 1).rc == 0
    producer_id = 900_000 + len(topic)
    leave_hanging(bootstrap, topic, producer_id)
    (found,) = same(ottla, kafka, "find-hanging", "--topic", topic)
    assert found[:4] == [topic, "0", str(producer_id), "3"]
    assert found[5] == "0"
    assert int(found[7]) >= 20
    assert json.loads(ottla("transactions", "find-hanging", "--json").out)[0]["producerId"] >= 900_000
    assert ottla("consume", topic, "--from-beginning", "--until-end").lines == ["ghost"]
    which = ("--start-offset", "0")
    if by == "producer":
        which = ("--producer-id", str(producer_id), "--producer-epoch", "3", "--coordinator-epoch", "-1")
    done = ottla("transactions", "abort", "--topic", topic, "--partition", "0", *which)
    assert (done.rc, done.out, done.err) == (0, "", "")
    assert same(ottla, kafka, "find-hanging", "--topic", topic) == []
    committed = ottla("consume", topic, "--from-beginning", "--until-end", "--isolation-level", "read_committed")
    assert (committed.rc, committed.lines) == (0, [])
    again = ottla("transactions", "abort", f"{topic}:0", "--start-offset", "0")
    assert (again.rc, "no open transaction begins at offset 0" in again.err) == (1, True)


@pytest.mark.parametrize("action", ["force-terminate", "forceTerminateTransaction"])
def test_force_terminate_aborts_and_fences_the_producer(
    ottla: RunOttla, kafka: RunTool, topic: str, open_transaction: Open, action: str
) -> None:
    producer = open_transaction(topic)
    flag = "--transactionalId" if action == "forceTerminateTransaction" else "--transactional-id"
    done = ottla("transactions", action, flag, topic)
    assert (done.rc, done.out, done.err) == (0, "", "")
    await_true(lambda: state(ottla, topic) in ("CompleteAbort", "Empty"), "the transaction to be aborted")
    same(ottla, kafka, "describe-producers", "--topic", topic, "--partition", "0")
    with pytest.raises(KafkaException, match=r"[Ff]enced"):
        producer.commit_transaction(TIMEOUT_S)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("describe", "absent"), "there is no transactional id absent (TRANSACTIONAL_ID_NOT_FOUND)"),
        (("force-terminate", "absent"), "there is no transactional id absent"),
        (("describe-producers", "absent:0"), "topic absent does not exist"),
        (("describe-producers", "there:9"), "topic there has no partition 9"),
        (("abort", "there:0", "--start-offset", "5"), "no open transaction begins at offset 5"),
        (("find-hanging", "--topic", "absent"), "topic absent does not exist"),
        (("list", "--transactional-id-pattern", "a("), "INVALID_REGULAR_EXPRESSION"),
    ],
)
def test_refusals_are_one_sentence(ottla: RunOttla, arguments: tuple[str, ...], said: str) -> None:
    ottla("topics", "create", "there", "--if-not-exists", "--partitions", 2)
    refused = ottla("transactions", *arguments)
    assert refused.rc == 1
    assert said in refused.err
    assert refused.err.startswith("ottla: ")
    assert "Traceback" not in refused.err
