"""Plain requests of transactional producers get Apache Kafka's answers.

Ids, epochs, fencing, partitions, retried ends, verification of batches, markers written by hand. The sweep tests single
versions.
"""

from collections.abc import Iterator

import pytest
from tests.support.peers.topics import await_true, make_topic
from tests.support.peers.transaction_requests import TransactionRequests
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer

from ottla.coordinator.contract import Producer

UNKNOWN_PARTITION, NOT_COORDINATOR, TOPIC_AUTHORIZATION, INVALID_REQUEST = 3, 16, 29, 42
INVALID_EPOCH, INVALID_STATE, INVALID_MAPPING, INVALID_TIMEOUT, CONCURRENT, COORDINATOR_FENCED = 47, 48, 49, 50, 51, 52
ID_AUTHORIZATION, NOT_ATTEMPTED, FENCED, ID_NOT_FOUND, ABORTABLE, INVALID_REGEX = 53, 55, 90, 105, 120, 128
NO_PRODUCER = Producer(-1, -1)


@pytest.fixture
def raw(cluster: KafkaServer, topic: str) -> Iterator[TransactionRequests]:
    """Requests to the shared server, where `topic` has three partitions and is also an unused transactional id."""
    make_topic(cluster.bootstrap, topic, 3)
    requests = TransactionRequests(cluster.bootstrap)
    requests.find_coordinator(topic)
    yield requests
    requests.close()


def state_of(raw: TransactionRequests, name: str, *awaited: str) -> tuple[str, int, dict[str, list[int]]]:
    """(state, epoch, partitions), once the state is one of those awaited."""
    await_true(lambda: not awaited or raw.describe(name)[1] in awaited, f"{name} to be {awaited}")
    code, state, epoch, partitions = raw.describe(name)
    assert code == 0
    return state, epoch, partitions


def test_there_is_no_coordinator_before_its_topic_exists(start_server: StartServer) -> None:
    with start_server({"transaction.state.log.num.partitions": 1}) as server:
        make_topic(server.bootstrap, "t")
        raw, unknown = TransactionRequests(server.bootstrap), Producer(1, 0)
        assert raw.initialise("a", patient=False) == (NOT_COORDINATOR, NO_PRODUCER)
        assert raw.add("a", unknown, "t", 0, patient=False) == [NOT_COORDINATOR]
        assert raw.end("a", unknown, True, patient=False) == (NOT_COORDINATOR, NO_PRODUCER)
        assert raw.describe("a")[0] == NOT_COORDINATOR
        assert raw.listed() == (0, [], [])
        raw.close()


def test_initialising(raw: TransactionRequests, topic: str) -> None:
    assert raw.describe(topic)[0] == ID_NOT_FOUND
    assert raw.initialise(topic, timeout_ms=0) == raw.initialise(topic, timeout_ms=900_001) == (INVALID_TIMEOUT, NO_PRODUCER)
    code, first = raw.initialise(topic)
    assert (code, first.epoch) == (0, 0)
    assert state_of(raw, topic) == ("Empty", 0, {})
    assert raw.initialise(topic, version=0) == (0, Producer(first.id, 1))
    assert raw.initialise(topic, first, version=3) == (INVALID_EPOCH, NO_PRODUCER)
    assert raw.initialise(topic, first) == raw.initialise(topic, Producer(first.id + 999, 3)) == (FENCED, NO_PRODUCER)
    second = Producer(first.id, 1)
    assert raw.initialise(topic, second) == raw.initialise(topic, second) == (0, Producer(first.id, 2))


def test_a_transaction_of_version_1(raw: TransactionRequests, topic: str) -> None:
    _, producer = raw.initialise(topic)
    zombie, unknown_id = Producer(producer.id, producer.epoch + 1), Producer(producer.id + 999, 0)
    assert raw.end(topic, producer, False, version=4)[0] == raw.end(topic, producer, True, version=4)[0] == INVALID_STATE
    assert raw.add(topic, zombie, topic, 0, version=1) == [INVALID_EPOCH]
    assert raw.add(topic, zombie, topic, 0) == [FENCED]
    assert raw.add(topic, unknown_id, topic, 0) == raw.add(f"{topic}-not", producer, topic, 0) == [INVALID_MAPPING]
    assert raw.add(topic, producer, topic, 0, 9) == [NOT_ATTEMPTED, UNKNOWN_PARTITION]
    assert raw.add(topic, producer, "__transaction_state", 0) == [TOPIC_AUTHORIZATION]
    assert raw.add("", producer, topic, 0) == [INVALID_REQUEST]
    assert raw.add(topic, producer, topic, 0, 1) == [0, 0]
    assert state_of(raw, topic) == ("Ongoing", 0, {topic: [0, 1]})
    assert raw.end(topic, zombie, True, version=1)[0] == INVALID_EPOCH
    assert raw.end(topic, zombie, True, version=4)[0] == FENCED
    assert raw.produce(topic, producer, 0, topic, b"a", version=9) == (0, 0)
    assert raw.produce(topic, producer, 1, topic, b"b", version=11) == (0, 1)
    assert raw.end(topic, producer, True, version=4) == (0, NO_PRODUCER)
    assert state_of(raw, topic, "CompleteCommit") == ("CompleteCommit", 0, {})
    assert raw.end(topic, producer, True, version=4)[0] == 0
    assert raw.end(topic, producer, False, version=4)[0] == INVALID_STATE
    assert raw.add_offsets(topic, producer, "group") == 0
    assert list(state_of(raw, topic)[2]) == ["__consumer_offsets"]
    assert raw.end(topic, producer, False, version=4)[0] == 0
    assert raw.add_offsets(topic, zombie, "group", version=1) == INVALID_EPOCH
    assert raw.add_offsets(topic, zombie, "group") == FENCED


def test_batches_need_a_transaction_that_is_known(raw: TransactionRequests, topic: str) -> None:
    _, producer = raw.initialise(topic)
    assert raw.add(topic, producer, topic, 0) == [0]
    assert raw.add_as_broker(topic, producer, topic, 0, 2, verify_only=True) == [0, ABORTABLE]
    assert raw.add_as_broker(topic, Producer(producer.id, 7), topic, 0, verify_only=True) == [FENCED]
    assert raw.add_as_broker(topic, Producer(producer.id + 9, 0), topic, 0, verify_only=True) == [INVALID_MAPPING]
    assert raw.add_as_broker("", producer, topic, 0, verify_only=True) == [INVALID_REQUEST]
    assert raw.add_as_broker(topic, producer, topic, 0, 9, verify_only=True) == [NOT_ATTEMPTED, UNKNOWN_PARTITION]
    codes = [raw.produce(topic, producer, 0, topic, b"x", index=2, version=version)[0] for version in (9, 10, 11)]
    assert codes == [INVALID_STATE, INVALID_STATE, ABORTABLE]
    assert raw.produce(topic, producer, 0, topic, b"a", version=11) == (0, 0)
    assert raw.produce(topic, producer, 1, topic, b"b", version=11, transactional=False) == (INVALID_STATE, -1)
    assert raw.produce(None, producer, 1, topic, b"b", version=11) == (ID_AUTHORIZATION, -1)
    assert raw.produce(f"{topic}-not", producer, 0, topic, b"b", index=1, version=11) == (INVALID_MAPPING, -1)
    assert raw.end(topic, producer, True, version=4)[0] == 0
    state_of(raw, topic, "CompleteCommit")
    assert raw.produce(topic, producer, 1, topic, b"late", version=11) == (ABORTABLE, -1)


def test_transactions_of_version_2(raw: TransactionRequests, topic: str) -> None:
    _, first = raw.initialise(topic)
    assert raw.produce(topic, first, 0, topic, b"a") == (0, 0)
    assert raw.produce(topic, first, 0, topic, b"b", index=1) == (0, 0)
    assert state_of(raw, topic) == ("Ongoing", 0, {topic: [0, 1]})
    second = Producer(first.id, 1)
    assert raw.end(topic, first, True) == (0, second)
    assert raw.end(topic, first, True) == (0, second), "a retry gets the same response"
    assert raw.end(topic, first, False) == raw.end(topic, second, True) == (INVALID_STATE, NO_PRODUCER)
    third = Producer(first.id, 2)
    assert raw.end(topic, second, False) == raw.end(topic, second, False) == (0, third)
    assert raw.end(topic, second, True) == (INVALID_STATE, NO_PRODUCER)
    assert raw.end(topic, Producer(first.id, 5), False) == raw.end(topic, first, False) == (FENCED, NO_PRODUCER)
    assert raw.produce(topic, first, 1, topic, b"late") == (INVALID_EPOCH, -1)
    assert raw.produce(topic, third, 0, topic, b"c") == (0, 2)
    assert raw.end(topic, Producer(first.id + 999, 2), True) == (INVALID_MAPPING, NO_PRODUCER)


@pytest.mark.parametrize("version", [1, 2])
def test_new_instance_aborts_the_transaction_of_the_old_one(raw: TransactionRequests, topic: str, version: int) -> None:
    _, zombie = raw.initialise(topic)
    if version == 1:
        assert raw.add(topic, zombie, topic, 0) == [0]
    else:
        assert raw.produce(topic, zombie, 0, topic, b"a") == (0, 0)
    assert raw.initialise(topic, patient=False) == (CONCURRENT, NO_PRODUCER)
    assert state_of(raw, topic, "CompleteAbort") == ("CompleteAbort", 1, {})
    assert raw.initialise(topic) == (0, Producer(zombie.id, 2))
    assert raw.add(topic, zombie, topic, 0) == [FENCED]
    assert raw.end(topic, zombie, True)[0] == raw.end(topic, zombie, True, version=4)[0] == FENCED


def test_a_producer_goes_on_after_its_own_failure(raw: TransactionRequests, topic: str) -> None:
    _, producer = raw.initialise(topic)
    assert raw.produce(topic, producer, 0, topic, b"a") == (0, 0)
    assert raw.initialise(topic, producer, patient=False) == (CONCURRENT, NO_PRODUCER)
    assert raw.initialise(topic, producer) == (0, Producer(producer.id, 1))


def test_listing(raw: TransactionRequests, topic: str) -> None:
    _, producer = raw.initialise(topic)
    assert raw.produce(topic, producer, 0, topic, b"a") == (0, 0)
    mine = (0, [(topic, "Ongoing")], [])
    assert raw.listed(producer_id_filters=[producer.id]) == mine
    assert raw.listed(transactional_id_pattern=f"{topic}|nobody", duration_filter=0) == mine
    assert raw.listed(transactional_id_pattern=topic[:-1]) == (0, [], []), "the whole id is compared"
    assert raw.listed(transactional_id_pattern="(")[0] == INVALID_REGEX
    code, states, unknown = raw.listed(state_filters=["Ongoing", "Nonsense"])
    assert (code, unknown) == (0, ["Nonsense"])
    assert (topic, "Ongoing") in states
    assert raw.listed(state_filters=["Nonsense"]) == (0, [], ["Nonsense"])
    assert raw.listed(producer_id_filters=[producer.id], duration_filter=100_000) == (0, [], [])
    assert raw.describe("")[0] == INVALID_REQUEST


def test_markers_written_by_hand(raw: TransactionRequests, topic: str) -> None:
    _, producer = raw.initialise(topic)
    assert raw.produce(topic, producer, 0, topic, b"a") == (0, 0)
    later = Producer(producer.id, 1)
    assert raw.write_marker(producer, False, topic, 0, transaction_version=2) == [INVALID_EPOCH], (
        "version 2 wants a later epoch"
    )
    assert raw.write_marker(later, False, topic, 0, 9, coordinator_epoch=3) == [0, UNKNOWN_PARTITION]
    assert raw.write_marker(later, False, topic, 0, coordinator_epoch=3, transaction_version=2) == [0], "a repeat"
    assert raw.write_marker(producer, False, topic, 0, coordinator_epoch=3) == [INVALID_EPOCH]
    assert raw.write_marker(later, False, topic, 0, coordinator_epoch=2) == [COORDINATOR_FENCED]
    assert raw.write_marker(later, True, f"{topic}-not", 0) == [UNKNOWN_PARTITION]
