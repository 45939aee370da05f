"""Transactions with every library, with transaction.version 1 and 2: all or nothing, offsets too, one producer per id."""

import pytest
from tests.support.peers.clients import CLIENTS, Outgoing, ProducerOptions
from tests.support.peers.topics import make_topic
from tests.support.peers.transactions import (
    LIBRARIES,
    Producers,
    TransactionFailed,
    await_all_decided,
    committed_offset,
    ends,
    read,
)
from tests.support.servers.kafka_server import KafkaServer

every_library = pytest.mark.parametrize("library", LIBRARIES)


@every_library
def test_all_or_nothing(cluster: KafkaServer, producers: Producers, name: str, library: str) -> None:
    topics = (f"{name}-a", f"{name}-b")
    for topic in topics:
        make_topic(cluster.bootstrap, topic, 2)
    producer = producers.open(library, cluster.bootstrap, name)
    producer.init()
    for turn, commits in enumerate([True, False, True, True, False]):
        producer.begin()
        for topic in topics:
            for partition in range(2):
                producer.send(topic, partition, f"{turn}-{partition}")
        if commits:
            producer.commit()
        else:
            producer.abort()
    producer.close()
    for topic in topics:
        await_all_decided(cluster.bootstrap, topic, 2)
        everything = [f"{turn}-{partition}" for partition in range(2) for turn in range(5)]
        assert read(cluster.bootstrap, topic, 2, committed=False) == everything
        kept = [value for value in everything if value[0] in "023"]
        assert read(cluster.bootstrap, topic, 2, committed=True) == kept


@every_library
def test_open_transactions_hold_readers_back(cluster: KafkaServer, producers: Producers, name: str, library: str) -> None:
    make_topic(cluster.bootstrap, name, 1)
    producer = producers.open(library, cluster.bootstrap, name)
    producer.init()
    producer.begin()
    producer.send(name, 0, "open")
    CLIENTS["confluent"]().produce(cluster.bootstrap, name, [Outgoing(b"plain")], ProducerOptions())
    assert ends(cluster.bootstrap, name, 1, committed=True) == [0]
    assert read(cluster.bootstrap, name, 1, committed=True) == []
    assert read(cluster.bootstrap, name, 1, committed=False) == ["open", "plain"]
    producer.abort()
    await_all_decided(cluster.bootstrap, name, 1)
    assert read(cluster.bootstrap, name, 1, committed=True) == ["plain"]


@every_library
def test_offsets_belong_to_the_transaction(cluster: KafkaServer, producers: Producers, name: str, library: str) -> None:
    make_topic(cluster.bootstrap, name, 1)
    producer = producers.open(library, cluster.bootstrap, name)
    producer.init()
    producer.begin()
    producer.send(name, 0, "one")
    producer.send_offset(name, name, 0, 7)
    producer.commit()
    assert committed_offset(cluster.bootstrap, name, name, 0) == 7
    producer.begin()
    producer.send_offset(name, name, 0, 9)
    producer.abort()
    assert committed_offset(cluster.bootstrap, name, name, 0) == 7
    producer.begin()
    producer.send_offset(name, name, 0, 11)
    producer.send_offset(name, name, 0, 12)
    producer.commit()
    assert committed_offset(cluster.bootstrap, name, name, 0) == 12


@every_library
def test_a_new_producer_fences_the_old_one(cluster: KafkaServer, producers: Producers, name: str, library: str) -> None:
    make_topic(cluster.bootstrap, name, 1)
    old = producers.open(library, cluster.bootstrap, name)
    old.init()
    old.begin()
    old.send(name, 0, "old")
    new = producers.open(library, cluster.bootstrap, name)
    new.init()
    assert ends(cluster.bootstrap, name, 1, committed=True) == ends(cluster.bootstrap, name, 1, committed=False)
    with pytest.raises(TransactionFailed) as failed:
        old.commit()
    assert failed.value.fenced, failed.value
    new.begin()
    new.send(name, 0, "new")
    new.commit()
    await_all_decided(cluster.bootstrap, name, 1)
    assert read(cluster.bootstrap, name, 1, committed=True) == ["new"]


@every_library
def test_late_transactions_are_aborted(cluster: KafkaServer, producers: Producers, name: str, library: str) -> None:
    make_topic(cluster.bootstrap, name, 1)
    producer = producers.open(library, cluster.bootstrap, name, timeout_ms=1000)
    producer.init()
    producer.begin()
    producer.send(name, 0, "late")
    assert ends(cluster.bootstrap, name, 1, committed=True) == [0]
    await_all_decided(cluster.bootstrap, name, 1)
    with pytest.raises(TransactionFailed):
        producer.commit()
    assert read(cluster.bootstrap, name, 1, committed=True) == []
    again = producers.open(library, cluster.bootstrap, name)
    again.init()
    again.begin()
    again.send(name, 0, "in time")
    again.commit()
    await_all_decided(cluster.bootstrap, name, 1)
    assert read(cluster.bootstrap, name, 1, committed=True) == ["in time"]
