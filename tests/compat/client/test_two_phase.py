"""Two-phase commit of Ottla's producers (KIP-939), with a node that serves it and one that does not."""

import time
from collections.abc import Iterator

import pytest
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import make_topic
from tests.support.peers.transactions import await_all_decided, read

from ottla import PreparedTransaction, TransactionIdentity
from ottla.errors import IllegalStateError, ProducerFencedError, UnsupportedVersionError
from ottla.testing import Broker

SETTINGS = {
    "transaction.two.phase.commit.enable": "true",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
TWO_PHASE = {"transaction_two_phase_commit_enable": True}
NEVER_MS = 2**31 - 1
HANG_S = 180


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker(SETTINGS) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize("is_decided", [False, True])
def test_a_prepared_transaction_is_completed_by_the_next_producer(
    servers: str, face: Faces, topic: str, is_decided: bool
) -> None:
    make_topic(servers, topic, 2)
    first = face.producer(servers, transactional_id=topic, **TWO_PHASE)
    first.init_transactions()
    first.begin_transaction()
    for number in range(4):
        first.send(topic, b"%d" % number, partition=number % 2)
    prepared = first.prepare_transaction()
    with pytest.raises(IllegalStateError, match="prepared"):
        first.send(topic, b"late", partition=0)
    first.close()
    admin = face.admin(servers)
    assert admin.describe_transactions([topic]).values_found[topic].timeout_ms == NEVER_MS

    second = face.producer(servers, transactional_id=topic, **TWO_PHASE)
    second.init_transactions(keep_prepared=True)
    with pytest.raises(IllegalStateError, match="prepared"):
        second.begin_transaction()
    stored = prepared if is_decided else PreparedTransaction(prepared.producer_id, prepared.epoch - 1)
    assert second.complete_transaction(stored) is is_decided
    assert second.complete_transaction(stored) is False  # nothing is prepared any more
    with second.transaction():
        second.send(topic, b"next", partition=0)
    await_all_decided(servers, topic, 2)
    expected = ["0", "1", "2", "3"] if is_decided else []
    assert sorted(read(servers, topic, 2, committed=True)) == [*expected, "next"]


def test_the_producer_that_prepared_is_fenced_by_the_one_that_keeps(servers: str, face: Faces, topic: str) -> None:
    make_topic(servers, topic)
    zombie, keeper = (face.producer(servers, transactional_id=topic, **TWO_PHASE) for _ in range(2))
    zombie.init_transactions()
    zombie.begin_transaction()
    zombie.send(topic, b"v")
    prepared = zombie.prepare_transaction()
    keeper.init_transactions(keep_prepared=True)
    with pytest.raises(ProducerFencedError):
        zombie.complete_transaction(prepared)
    assert keeper.complete_transaction(prepared)
    await_all_decided(servers, topic, 1)
    assert read(servers, topic, 1, committed=True) == ["v"]


def test_a_transaction_that_is_taken_over_loses_its_timeout(servers: str, face: Faces, topic: str) -> None:
    make_topic(servers, topic)
    admin, ender = face.admin(servers), face.producer(servers)
    identities = {}
    for name in (f"{topic}-kept", f"{topic}-clock"):
        writer = face.producer(servers, transactional_id=name, transaction_timeout_ms=1000)
        writer.init_transactions()
        writer.begin_transaction()
        writer.send(topic, name.encode())
        identities[name] = writer.detach_transaction()
        if name.endswith("kept"):
            kept = ender.keep_transaction(*identities[name])
            assert isinstance(kept, TransactionIdentity)
    deadline_s = time.monotonic() + HANG_S
    while admin.describe_transactions([name]).values_found[name].state != "CompleteAbort":
        assert time.monotonic() < deadline_s, "the other transaction does not time out"
        time.sleep(0.05)
    assert ender.keep_transaction(*identities[name]) is None  # too late
    ender.finish_transaction(*kept)
    await_all_decided(servers, topic, 1)
    assert read(servers, topic, 1, committed=True) == [f"{topic}-kept"]


def test_brokers_without_two_phase_commit_are_named(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    for given, call in ((TWO_PHASE, {}), ({}, {"keep_prepared": True})):
        producer = face.producer(bootstrap, transactional_id=topic, **given)
        with pytest.raises(UnsupportedVersionError, match=r"two-phase commit needs version 6, .*serves it up to 5 only"):
            producer.init_transactions(**call)
    with pytest.raises(UnsupportedVersionError, match="two-phase commit needs version 6"):
        face.producer(bootstrap).keep_transaction(topic, 1, 0)
