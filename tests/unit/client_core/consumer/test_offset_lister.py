"""Queries for offsets by time: whom they ask, what they find, what is asked again and what ends them."""

from typing import Any

from tests.support.machines.consumer_cluster import TOPIC, FakeCluster, known_metadata, no_chance, place, settings
from tests.support.machines.open_connections import OpenConnections

from ottla.client_core.consumer.offset_lister import OffsetAndTimestamp, OffsetLister
from ottla.client_core.machine import Channel, Connect, Request
from ottla.client_core.metadata import NO_LEADER, Metadata
from ottla.errors import NetworkError, SaslAuthenticationError, TopicAuthorizationError, UnsupportedVersionError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse


def machine(cluster: FakeCluster | None = None, **changes: Any) -> tuple[OffsetLister, Metadata]:
    chosen: Any = settings(**changes)
    metadata = known_metadata(cluster or FakeCluster())
    return OffsetLister(metadata, chosen, no_chance), metadata


def sent(lister: OffsetLister, now_ms: int = 0) -> Request:
    (request,) = lister.step(now_ms)
    return request


def asked(request: Request) -> dict[int, tuple[int, int]]:
    """(timestamp, leader epoch) by partition."""
    message: Any = request.message
    return {data.partition_index: (data.timestamp, data.current_leader_epoch) for data in message.topics[0].partitions}


def found(partition: int, offset: int, timestamp: int = -1, epoch: int = -1) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=partition, offset=offset, timestamp=timestamp, leader_epoch=epoch)


def refused(partition: int, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=partition, error_code=code)


def answer(lister: OffsetLister, request: Request, *data: ListOffsetsPartitionResponse, now_ms: int = 0) -> None:
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=list(data))])
    lister.answered(request, response, 10, now_ms)


def refresh(metadata: Metadata, cluster: FakeCluster, now_ms: int) -> None:
    (request,) = metadata.step(now_ms)
    metadata.answered(request, cluster._metadata(), 12, now_ms)


def test_one_request_per_leader_asks_for_all_its_partitions() -> None:
    lister, metadata = machine(isolation_level="read_committed")
    metadata.learn_leader(TOPIC, 1, 2, 4)
    lister.ask({place(0): -2, place(1): 1_000})
    requests = lister.step(0)
    assert {request.node: asked(request) for request in requests} == {1: {0: (-2, 0)}, 2: {1: (1_000, 4)}}
    message: Any = requests[0].message
    assert (message.replica_id, message.isolation_level, message.timeout_ms) == (-1, 1, 30_000)
    assert lister.step(10_000) == []


def test_answers_are_kept_and_no_record_of_that_time_is_none() -> None:
    lister, _ = machine()
    query = lister.ask({place(0): 500, place(1): 900})
    answer(lister, sent(lister), found(0, 7, 501, 3), found(1, -1))
    assert query.is_done
    assert query.found == {place(0): OffsetAndTimestamp(7, 501, 3), place(1): None}
    assert lister.step(10_000) == []


def test_only_what_was_refused_or_left_out_is_asked_again() -> None:
    cluster = FakeCluster(3)
    lister, _ = machine(cluster)
    query = lister.ask({place(0): -1, place(1): -1, place(2): -1})
    answer(lister, sent(lister), found(0, 7), refused(1, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert query.retried is not None
    assert lister.step(50) == []
    deadline_ms = lister.next_deadline_ms()
    assert deadline_ms is not None
    assert deadline_ms >= 100
    assert asked(sent(lister, deadline_ms)).keys() == {1, 2}
    assert query.found == {place(0): OffsetAndTimestamp(7, -1)}


def test_news_of_the_cluster_end_the_backoff() -> None:
    cluster = FakeCluster()
    lister, metadata = machine(cluster)
    lister.ask({place(0): -1})
    answer(lister, sent(lister), refused(0, ErrorCode.NOT_LEADER_OR_FOLLOWER), now_ms=1_000)
    assert lister.step(1_001) == []
    cluster.partitions[0].leader, cluster.partitions[0].epoch = 2, 1
    refresh(metadata, cluster, 1_001)
    request = sent(lister, 1_001)
    assert (request.node, asked(request)) == (2, {0: (-1, 1)})


def test_a_partition_without_a_leader_waits_for_metadata_not_for_time() -> None:
    cluster = FakeCluster()
    lister, metadata = machine(cluster)
    lister.ask({place(0): -1})
    lister.failed(sent(lister), NetworkError("the connection was lost"), 1_000)
    cluster.partitions[0].leader = NO_LEADER
    refresh(metadata, cluster, 1_050)
    assert lister.step(1_100) == []
    deadline_ms = lister.next_deadline_ms()
    assert deadline_ms is None or deadline_ms > 1_100  # a deadline in the past would make the driver spin
    assert metadata.step(2_000)


def test_an_error_that_no_retry_mends_ends_its_partition_only() -> None:
    lister, _ = machine()
    query = lister.ask({place(0): -1, place(1): -1})
    answer(lister, sent(lister), refused(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED), found(1, 3))
    assert query.is_done
    assert isinstance(query.errors[place(0)], TopicAuthorizationError)
    assert query.found == {place(1): OffsetAndTimestamp(3, -1)}


def test_a_topic_that_may_not_be_seen_ends_the_query_without_a_request() -> None:
    cluster = FakeCluster()
    lister, metadata = machine(cluster)
    response = cluster._metadata()
    response.topics[0].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    metadata.unwant([TOPIC])
    metadata.want([TOPIC])
    (request,) = metadata.step(1_000)
    metadata.answered(request, response, 12, 1_000)
    query = lister.ask({place(0): -1})
    assert lister.step(1_000) == []
    assert query.is_done
    assert isinstance(query.errors[place(0)], TopicAuthorizationError)


def test_the_backoff_starts_over_after_an_answer() -> None:
    lister, _ = machine()
    for start_ms in (0, 10_000):
        lister.ask({place(0): -1})
        answer(lister, sent(lister, start_ms), refused(0, ErrorCode.NOT_LEADER_OR_FOLLOWER), now_ms=start_ms)
        assert lister.next_deadline_ms() == start_ms + 100
        answer(lister, sent(lister, start_ms + 100), found(0, 7), now_ms=start_ms + 100)
        assert lister.next_deadline_ms() is None


def test_a_broker_that_cannot_answer_ends_the_query() -> None:
    lister, _ = machine()
    query = lister.ask({place(0): -1})
    error = UnsupportedVersionError("too old")
    lister.failed(sent(lister), error, 0)
    assert (query.is_done, query.errors) == (True, {place(0): error})


def test_a_partition_beyond_the_last_one_is_retried_and_says_why() -> None:
    lister, metadata = machine()
    query = lister.ask({place(5): -1})
    assert lister.step(0) == []
    assert "topic t has no partition 5; it has 2" in str(query.retried)
    assert metadata.step(1_000)


def test_a_dropped_query_is_not_sent_and_an_empty_one_is_done() -> None:
    lister, _ = machine()
    lister.drop(lister.ask({place(0): -1}))
    assert lister.step(0) == []
    assert lister.ask({}).is_done


def test_a_query_follows_the_leader_while_the_old_one_cannot_be_connected_to() -> None:
    lister, metadata = machine()
    lister.connecting.connections = OpenConnections((2, Channel.DATA))
    lister.ask({place(0): -1})
    assert (type(sent(lister)), lister.step(10)) == (Connect, [])
    metadata.learn_leader(TOPIC, 0, 2, 4)
    assert asked(sent(lister, 20)) == {0: (-1, 4)}


def test_a_query_waits_for_the_connection_and_says_why() -> None:
    lister, _ = machine()
    connections = lister.connecting.connections = OpenConnections()
    query = lister.ask({place(0): -1})
    error = NetworkError("refused")
    lister.failed(sent(lister), error, 0)
    assert query.retried is error
    deadline_ms = lister.next_deadline_ms()
    assert deadline_ms == 100
    again = sent(lister, deadline_ms)
    connections.open.add((1, Channel.DATA))
    lister.answered(again, None, 0, 110)
    answer(lister, sent(lister, 110), found(0, 7))
    assert query.is_done


def test_a_refused_login_ends_the_query() -> None:
    lister, _ = machine()
    lister.connecting.connections = OpenConnections()
    query = lister.ask({place(0): -1, place(1): -1})
    lister.failed(sent(lister), SaslAuthenticationError("wrong password"), 0)
    assert query.is_done
    assert set(query.errors) == {place(0), place(1)}
