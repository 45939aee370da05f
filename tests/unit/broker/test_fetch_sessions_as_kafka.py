"""The same sequence of session requests sent to Apache Kafka and to Ottla: the responses are the same, step by step."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import make_topic
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPICS = {"a": 2, "b": 3}
WRONG_ID = Uuid(b"no such topic id")
T_BATCH = make_batch(b"x" * 40, b"y" * 40)

Told = tuple[int, bool, list[tuple[str, int, int, int, int, int]]]
"""Error, whether there is a session, and per partition: topic, index, error, high watermark, log start, bytes of records."""


class Peer:
    """A broker to talk to, whichever it is."""

    def __init__(self, fetch: Callable[[FetchRequest, int], FetchResponse], ids: dict[str, Uuid]) -> None:
        self._fetch = fetch
        self._ids = ids
        self._names = {topic_id: name for name, topic_id in ids.items()}
        self.session_id = 0

    def ask(
        self,
        epoch: int,
        *wanted: tuple[str, int, int],
        forget: tuple[tuple[str, int], ...] = (),
        session_id: int | None = None,
        version: int = 12,
        **more: Any,
    ) -> Told:
        topics = [
            FetchTopic(
                **self._name(topic, version),
                partitions=[FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=500)],
            )
            for topic, index, offset in wanted
        ]
        forgotten = [ForgottenTopic(**self._name(topic, version), partitions=[index]) for topic, index in forget]
        request = FetchRequest(
            session_id=self.session_id if session_id is None else session_id,
            session_epoch=epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
            **more,
        )
        response = self._fetch(request, version)
        if epoch == 0:
            self.session_id = response.session_id
        told = [
            (
                entry.topic if version < 13 else self._names.get(entry.topic_id, "?"),
                data.partition_index,
                data.error_code,
                data.high_watermark,
                data.log_start_offset,
                len(data.records or b""),
            )
            for entry in response.responses
            for data in entry.partitions
        ]
        return response.error_code, response.session_id != 0, told

    def _name(self, topic: str, version: int) -> dict[str, Any]:
        if version < 13:
            return {"topic": topic}
        return {"topic_id": self._ids.get(topic, WRONG_ID if topic == "?" else ZERO_UUID)}


def conversation(peer: Peer, produce: Callable[[str, int], None], delete: Callable[[str, int, int], None]) -> list[Told]:
    """Requests that a client might send, and many that it would not."""
    told = [peer.ask(-1, ("a", 0, 0)), peer.ask(0, ("a", 0, 0), ("b", 0, 0), ("b", 1, 0), ("a", 1, 0), ("nope", 0, 0))]
    told += [peer.ask(1), peer.ask(1), peer.ask(3), peer.ask(2)]
    produce("b", 1)
    told += [peer.ask(3), peer.ask(4), peer.ask(5, ("b", 1, 2))]
    for _ in range(3):
        produce("a", 0)
        produce("b", 1)
        produce("a", 1)
    told += [peer.ask(6, max_bytes=1), peer.ask(7, max_bytes=1), peer.ask(8, max_bytes=1), peer.ask(9)]
    told += [peer.ask(10, ("a", 0, 6), ("b", 1, 8), ("a", 1, 6), ("b", 2, 0), forget=(("b", 0), ("nope", 0), ("b", 7)))]
    delete("b", 1, 3)
    told += [peer.ask(11), peer.ask(12, ("a", 0, 99)), peer.ask(13, ("a", 0, 6)), peer.ask(14), peer.ask(15)]
    told += [peer.ask(16, version=13), peer.ask(16, session_id=peer.session_id + 1)]
    told += [peer.ask(16, ("a", 0, 0), forget=(("a", 0),)), peer.ask(17)]
    told += [peer.ask(18, forget=(("a", 1), ("b", 1), ("b", 2))), peer.ask(19)]
    # The same with ids
    peer.session_id = 0
    told += [peer.ask(0, ("a", 0, 0), ("?", 0, 0), version=13), peer.ask(1, version=18), peer.ask(2)]
    told += [peer.ask(0, ("b", 1, 4), version=16), peer.ask(-1, ("b", 1, 4), version=16), peer.ask(1, version=16)]
    return told


@pytest.mark.slow
@pytest.mark.kafka
def test_session_responses_are_the_same_as_kafkas(apache_kafka: ApacheKafka) -> None:
    with apache_kafka.start_server() as server:
        ids = {name: make_topic(server.bootstrap, name, count) for name, count in TOPICS.items()}
        with RawClient.to(server.bootstrap) as client:

            def produce(topic: str, index: int) -> None:
                data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=bytes(T_BATCH))])
                response = client.request(ProduceRequest(acks=-1, timeout_ms=9000, topic_data=[data]), 9)
                assert response.responses[0].partition_responses[0].error_code == 0

            def delete(topic: str, index: int, offset: int) -> None:
                asked = DeleteRecordsTopic(
                    name=topic, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)]
                )
                response = client.request(DeleteRecordsRequest(topics=[asked], timeout_ms=9000), 2)
                assert response.topics[0].partitions[0].error_code == 0

            expected = conversation(Peer(client.request, ids), produce, delete)

    async def scenario() -> list[Told]:
        held = await HeldPartitions.open()
        ids = {name: await held.make_topic(name, count) for name, count in TOPICS.items()}

        def fetch(request: FetchRequest, version: int) -> FetchResponse:
            response = held.fetch(request, version)
            assert isinstance(response, FetchResponse)
            return response

        def produce(topic: str, index: int) -> None:
            assert held.produced(topic, index, T_BATCH).error_code == 0

        def delete(topic: str, index: int, offset: int) -> None:
            held.partition(topic, index).log.delete_records(offset)

        return conversation(Peer(fetch, ids), produce, delete)

    got = virtual(scenario())
    for step, (ours, apaches) in enumerate(zip(got, expected, strict=True)):
        assert ours == apaches, f"step {step}"
    assert len({told[0] for told in expected}) >= 4, "all kinds of disorder came up"
