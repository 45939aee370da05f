"""Faults, over the bare protocol: responses and effects of the requests they meet."""

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.net.listeners import Listeners
from ottla.env.real.net import RealNetwork
from ottla.errors.codes import ErrorCode
from ottla.link import ConnectFailed, Link, LinkEnded, RequestTimedOut
from ottla.records.builder import build_produce_batch
from ottla.testing import Broker, TimedOut
from ottla.wire.apis import ApiKey
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

Ask = Callable[..., Any]
WithLink = Callable[[Callable[[Link], Any]], Any]

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
_names = (f"topic-{number}" for number in itertools.count())


@pytest.fixture
def topic(broker: Broker) -> str:
    name = next(_names)
    broker.create_topic(name, partitions=3)
    return name


def produce_request(*topics: str, partitions: tuple[int, ...] = (0, 1, 2), acks: int = -1) -> ProduceRequest:
    """One record to each partition. In version 12 topics have names."""
    request = ProduceRequest(acks=acks, timeout_ms=1000)
    for topic in topics:
        data = [
            PartitionProduceData(index=index, records=memoryview(build_produce_batch([(0, None, b"value", ())])))
            for index in partitions
        ]
        request.topic_data.append(TopicProduceData(name=topic, partition_data=data))
    return request


def errors_of(response: Any, topics: str, partitions: str, index: str) -> dict[int, int]:
    """Partition → error, of a response about one topic."""
    (entry,) = getattr(response, topics)
    return {getattr(each, index): each.error_code for each in getattr(entry, partitions)}


def produced(response: Any) -> dict[int, int]:
    return errors_of(response, "responses", "partition_responses", "index")


def test_a_failed_request_is_not_done_and_the_next_one_is(broker: Broker, topic: str, ask: Ask) -> None:
    fault = broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=1)
    assert produced(ask(produce_request(topic), version=12)) == {0: NOT_LEADER, 1: NOT_LEADER, 2: NOT_LEADER}
    assert broker.records(topic) == []
    assert produced(ask(produce_request(topic), version=12)) == {0: 0, 1: 0, 2: 0}
    assert len(broker.records(topic)) == 3
    assert fault.hits == 1


def test_a_failed_partition_does_not_affect_the_others(broker: Broker, topic: str, ask: Ask) -> None:
    with broker.faults.fail("Produce", NOT_LEADER, topic=topic, partition=1) as fault:
        assert produced(ask(produce_request(topic), version=12)) == {0: 0, 1: NOT_LEADER, 2: 0}
    assert broker.end_offsets(topic) == {0: 1, 1: 0, 2: 1}
    assert produced(ask(produce_request(topic), version=12)) == {0: 0, 1: 0, 2: 0}
    assert fault.hits == 1


def test_errors_of_several_faults_are_combined(broker: Broker, topic: str, ask: Ask) -> None:
    broker.faults.fail("Produce", "MESSAGE_TOO_LARGE", topic=topic, partition=0)
    broker.faults.fail("Produce", "CORRUPT_MESSAGE", topic=topic, partition=2)
    found = produced(ask(produce_request(topic), version=12))
    assert found == {0: ErrorCode.MESSAGE_TOO_LARGE, 1: 0, 2: ErrorCode.CORRUPT_MESSAGE}


def test_all_partitions_failed_by_name(broker: Broker, topic: str, ask: Ask) -> None:
    broker.faults.fail("Produce", "CORRUPT_MESSAGE", topic=topic)
    assert set(produced(ask(produce_request(topic), version=12)).values()) == {ErrorCode.CORRUPT_MESSAGE}
    assert broker.records(topic) == []


def test_topics_known_by_id_only_are_met_by_name(broker: Broker, topic: str, ask: Ask) -> None:
    topic_id = ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)])).topics[0].topic_id
    request = produce_request(topic)
    request.topic_data[0].topic_id = topic_id
    broker.faults.fail("Produce", NOT_LEADER, topic=topic, partition=2)
    assert produced(ask(request, version=13)) == {0: 0, 1: 0, 2: NOT_LEADER}


def test_another_topic_and_another_client_are_not_affected(broker: Broker, topic: str, ask: Ask) -> None:
    elsewhere = broker.faults.fail("Produce", NOT_LEADER, topic="elsewhere")
    somebody = broker.faults.fail("Produce", NOT_LEADER, client_id="somebody")
    assert set(produced(ask(produce_request(topic), version=12)).values()) == {0}
    assert (elsewhere.hits, somebody.hits) == (0, 0)
    assert set(produced(ask(produce_request(topic), "somebody", version=12)).values()) == {NOT_LEADER}


def test_without_acks_a_failed_partition_ends_the_connection(broker: Broker, topic: str, with_link: WithLink) -> None:
    broker.faults.fail("Produce", NOT_LEADER, topic=topic, partition=1)

    async def use(link: Link) -> None:
        link.send_unanswered(produce_request(topic, acks=0), version=12)
        with pytest.raises(LinkEnded):
            await link.request(MetadataRequest(topics=[]))

    with_link(use)
    assert broker.end_offsets(topic) == {0: 1, 1: 0, 2: 1}


@pytest.mark.parametrize(("is_done", "kind"), [(False, "drop"), (True, "lose_reply")])
def test_a_dropped_request_is_not_handled_but_one_with_a_lost_reply_is(
    broker: Broker, topic: str, ask: Ask, kind: str, is_done: bool
) -> None:
    fault = getattr(broker.faults, kind)("Produce", topic=topic, times=1)
    with pytest.raises(LinkEnded):
        ask(produce_request(topic), version=12)
    assert fault.hits == 1
    assert len(broker.records(topic)) == (3 if is_done else 0)


def test_a_delay_holds_up_requests_behind_it(broker: Broker, with_link: WithLink) -> None:
    broker.faults.delay("Metadata", 0.3, times=1)

    async def use(link: Link) -> list[float]:
        began_s = time.monotonic()
        answers = [link.send(MetadataRequest(topics=[])), link.send(ListOffsetsRequest(replica_id=-1))]
        took_s = []
        for answer in answers:
            await answer
            took_s.append(time.monotonic() - began_s)
        return took_s

    first_s, second_s = with_link(use)
    assert 0.3 <= first_s <= second_s


def test_delays_add_up(broker: Broker, ask: Ask) -> None:
    broker.faults.delay("Metadata", 0.1)
    broker.faults.delay("*", 0.1)
    began_s = time.monotonic()
    ask(MetadataRequest(topics=[]))
    assert time.monotonic() - began_s >= 0.3  # the greeting is delayed too


def test_a_hung_request_keeps_its_connection_and_does_not_hold_up_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listeners.close, "__defaults__", (60.0,))  # how long a stop waits for answers under way
    with Broker() as other:
        fault = other.faults.hang("Metadata")

        async def use() -> None:
            link = await Link.connect(RealNetwork(), other.host, other.port)
            with pytest.raises(RequestTimedOut):
                await link.request(MetadataRequest(topics=[]), timeout_ms=100)
            hung = await Link.connect(RealNetwork(), other.host, other.port)
            hung.send(MetadataRequest(topics=[]))
            await other.aio.await_hits(fault, 2)
            assert not hung.is_over
            began_s = time.monotonic()
            await other.aio.stop()
            assert time.monotonic() - began_s < 30

        asyncio.run(use())


def test_connections_are_refused_until_the_fault_is_removed(broker: Broker, topic: str, with_link: WithLink, ask: Ask) -> None:
    async def use(link: Link) -> None:
        await link.request(MetadataRequest(topics=[]))
        with broker.faults.refuse_connections() as fault:
            with pytest.raises(LinkEnded):
                await link.request(MetadataRequest(topics=[]))
            with pytest.raises(ConnectFailed):
                await asyncio.to_thread(ask, MetadataRequest(topics=[]))
            assert fault.hits == 1
            assert await broker.aio.records(topic) == []  # the helpers still get through

    with_link(use)
    ask(MetadataRequest(topics=[]))


def test_helpers_are_not_affected_by_faults(broker: Broker, topic: str) -> None:
    fault = broker.faults.fail("*", "UNKNOWN_SERVER_ERROR")
    broker.produce(topic, "value")
    assert len(broker.await_records(topic, 1)) == 1
    assert fault.hits == 0


def test_metadata_of_one_topic(broker: Broker, topic: str, ask: Ask) -> None:
    broker.faults.fail("Metadata", "TOPIC_AUTHORIZATION_FAILED", topic=topic)
    broker.faults.fail("Metadata", "LEADER_NOT_AVAILABLE", topic="made-by-asking")
    named = ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic), MetadataRequestTopic(name="made-by-asking")]))
    assert {each.name: each.error_code for each in named.topics} == {
        topic: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "made-by-asking": ErrorCode.LEADER_NOT_AVAILABLE,
    }
    assert "made-by-asking" not in broker.topics()
    every = ask(MetadataRequest(topics=None))
    assert {each.name for each in every.topics if each.error_code} == {topic}
    assert [each.node_id for each in every.brokers] == [broker.node_id]


def test_metadata_of_one_partition(broker: Broker, topic: str, ask: Ask) -> None:
    broker.faults.fail("Metadata", "LEADER_NOT_AVAILABLE", topic=topic, partition=1)
    (found,) = ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)])).topics
    assert {each.partition_index: (each.error_code, each.leader_id) for each in found.partitions} == {
        0: (0, 1),
        1: (ErrorCode.LEADER_NOT_AVAILABLE, -1),
        2: (0, 1),
    }


def test_offsets_and_deleted_records_of_one_partition(broker: Broker, topic: str, ask: Ask) -> None:
    broker.faults.fail("ListOffsets", NOT_LEADER, topic=topic, partition=0)
    asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(3)]
    response = ask(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)]))
    assert errors_of(response, "topics", "partitions", "partition_index") == {0: NOT_LEADER, 1: 0, 2: 0}
    for index in range(3):
        broker.produce(topic, "value", partition=index)
    broker.faults.fail("DeleteRecords", NOT_LEADER, topic=topic, partition=2)
    deleted = [DeleteRecordsPartition(partition_index=index, offset=1) for index in range(3)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=deleted)], timeout_ms=1000)
    assert errors_of(ask(request), "topics", "partitions", "partition_index") == {0: 0, 1: 0, 2: NOT_LEADER}
    assert [record.partition for record in broker.records(topic)] == [2]


def test_topics_that_are_not_created_and_not_deleted(broker: Broker, topic: str, ask: Ask) -> None:
    broker.faults.fail("create_topics", "POLICY_VIOLATION", topic="refused")
    new = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("refused", "allowed")]
    response = ask(CreateTopicsRequest(topics=new, timeout_ms=5000))
    assert {each.name: each.error_code for each in response.topics} == {"refused": ErrorCode.POLICY_VIOLATION, "allowed": 0}
    broker.faults.fail("DeleteTopics", "TOPIC_DELETION_DISABLED", topic="allowed")
    old = [DeleteTopicState(name=name) for name in ("allowed", topic)]
    response = ask(DeleteTopicsRequest(topics=old, timeout_ms=5000))
    assert {each.name: each.error_code for each in response.responses} == {
        "allowed": ErrorCode.TOPIC_DELETION_DISABLED,
        topic: 0,
    }
    response = ask(DeleteTopicsRequest(topic_names=["allowed"], timeout_ms=5000), version=5)
    assert [each.error_code for each in response.responses] == [ErrorCode.TOPIC_DELETION_DISABLED]
    assert "allowed" in broker.topics()
    assert not {"refused", topic} & set(broker.topics())


def test_settings_of_one_topic(broker: Broker, topic: str, ask: Ask) -> None:
    broker.faults.fail("DescribeConfigs", "TOPIC_AUTHORIZATION_FAILED", topic="1")
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in ((2, topic), (4, "1"), (2, "1"))
    ]
    response = ask(DescribeConfigsRequest(resources=resources))
    assert {(each.resource_type, each.resource_name): each.error_code for each in response.results} == {
        (2, topic): 0,
        (4, "1"): 0,
        (2, "1"): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_an_api_without_topics(broker: Broker, ask: Ask) -> None:
    broker.faults.fail(ApiKey.INIT_PRODUCER_ID, "COORDINATOR_LOAD_IN_PROGRESS", times=2)
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    codes = [ask(request).error_code for _ in range(3)]
    assert codes == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 0]


def test_faults_that_were_removed(broker: Broker, topic: str, ask: Ask) -> None:
    first = broker.faults.fail("Produce", NOT_LEADER)
    second = broker.faults.fail("Produce", NOT_LEADER)
    ask(produce_request(topic), version=12)
    first.remove()
    first.remove()
    broker.faults.clear()
    assert set(produced(ask(produce_request(topic), version=12)).values()) == {0}
    assert (first.hits, second.hits) == (1, 1)


def test_hits_are_awaited(broker: Broker, ask: Ask) -> None:
    fault = broker.faults.delay("Metadata", 0.0)
    with pytest.raises(TimedOut, match=r"delay of Metadata was met 0 times in 0\.05 s, not 1 time"):
        fault.await_hits(timeout=0.05)
    ask(MetadataRequest(topics=[]))
    assert fault.await_hits() == 1
    assert repr(fault) == "<Fault delay of Metadata>"


def test_mistakes_in_faults_raise_value_error(broker: Broker) -> None:
    faults = broker.faults
    for call, text in [
        (lambda: faults.fail("Prodcue", NOT_LEADER), "serves no API 'Prodcue': did you mean Produce"),
        (lambda: faults.fail("FindCoordinatr", NOT_LEADER), "serves no API"),
        (lambda: faults.drop(4711), "does not serve the API 4711"),
        (lambda: faults.fail("Produce", "NOT_LEADER"), "Kafka has no error 'NOT_LEADER': did you mean NOT_LEADER_OR_FOLLOWER"),
        (lambda: faults.fail("Produce", 12345), "no error with the code 12345"),
        (lambda: faults.fail("Produce", "NONE"), "NONE is no error"),
        (lambda: faults.fail("Produce", NOT_LEADER, partition=1), "partition 1 of which topic"),
        (lambda: faults.fail("CreateTopics", NOT_LEADER, topic="a", partition=1), "whole topics"),
        (lambda: faults.fail("InitProducerId", NOT_LEADER, topic="a"), "name no topics"),
        (lambda: faults.delay("Produce", -1), "0 or more"),
        (lambda: faults.drop("Produce", times=0), "times=0"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
