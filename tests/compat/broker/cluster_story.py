"""Everything clients can read of a small cluster, comparable: topics, settings, offsets and every record.

assert story_of(one_server) == story_of(the_other_on_a_copy_of_its_directory)
"""

from dataclasses import dataclass

from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, ResourceType
from kafka import KafkaConsumer, TopicPartition
from tests.support.peers.clients import Incoming
from tests.support.peers.clients_kafka_python import KafkaPython, incoming
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_leaders
from tests.support.servers.kafka_server import KafkaServer

from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
DYNAMIC_SOURCES = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
    ConfigSource.DYNAMIC_BROKER_CONFIG.value,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value,
}
READERS = {"read_uncommitted": 0, "read_committed": 1}


@dataclass(slots=True)
class Story:
    """A cluster as its clients see it."""

    cluster_id: str
    topics: dict[str, tuple[bytes, int]]
    settings: dict[str, dict[str, str]]
    offsets: dict[str, tuple[int, ...]]
    producers: dict[str, list[tuple[int, int, int]]]
    records: dict[str, list[Incoming]]
    committed: dict[str, list[Incoming]]


def story_of(server: KafkaServer) -> Story:
    """Ask for everything; internal topics are left out."""
    with RawClient.to(server.bootstrap) as client:
        metadata = client.request(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
        topics = {
            topic.name: (bytes(topic.topic_id), len(topic.partitions)) for topic in metadata.topics if not topic.is_internal
        }
        for name, (_, partitions) in topics.items():
            await_leaders(server.bootstrap, name, partitions)
        places = [(name, index) for name, (_, count) in sorted(topics.items()) for index in range(count)]
        offsets = {f"{name}-{index}": _offsets(client, name, index) for name, index in places}
        producers = {f"{name}-{index}": _producers(client, name, index) for name, index in places}
    records: dict[str, dict[str, list[Incoming]]] = {}
    for level in READERS:
        records[level] = {f"{name}-{index}": _read(server, name, index, level) for name, index in places}
    return Story(
        cluster_id=metadata.cluster_id,
        topics=topics,
        settings=_settings(server, sorted(topics)),
        offsets=offsets,
        producers=producers,
        records=records["read_uncommitted"],
        committed=records["read_committed"],
    )


def _offsets(client: RawClient, name: str, index: int) -> tuple[int, ...]:
    """Earliest offset, latest offset, offset of the largest timestamp, and last stable offset."""
    found = []
    for timestamp, level in ((EARLIEST, 0), (LATEST, 0), (MAX_TIMESTAMP, 0), (LATEST, 1)):
        part = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        topic = ListOffsetsTopic(name=name, partitions=[part])
        (answer,) = client.request(ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=[topic]), 7).topics
        assert answer.partitions[0].error_code == 0, f"{name}-{index}: error {answer.partitions[0].error_code}"
        found.append(answer.partitions[0].offset)
    return tuple(found)


def _producers(client: RawClient, name: str, index: int) -> list[tuple[int, int, int]]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[index])])
    (part,) = client.request(request, 0).topics[0].partitions
    return sorted((each.producer_id, each.producer_epoch, each.last_sequence) for each in part.active_producers)


def _read(server: KafkaServer, name: str, index: int, isolation: str) -> list[Incoming]:
    """All records. Offsets do not give their number: markers and compacted records take offsets, too."""
    first, end = KafkaPython().ends(server.bootstrap, name, index)
    if first == end:
        return []
    consumer = KafkaConsumer(
        bootstrap_servers=server.bootstrap, group_id=None, isolation_level=isolation, auto_offset_reset="earliest"
    )
    partition = TopicPartition(name, index)
    rows: list[Incoming] = []
    try:
        consumer.assign([partition])
        consumer.seek(partition, first)
        while consumer.position(partition) < end:
            rows += [incoming(record) for record in consumer.poll(200).get(partition, [])]
    finally:
        consumer.close()
    return rows


def _settings(server: KafkaServer, topics: list[str]) -> dict[str, dict[str, str]]:
    """The settings changed at run time, of topics, of this broker and of all brokers."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    resources += [ConfigResource(ResourceType.BROKER, "1")]
    found = {}
    for resource, future in admin.describe_configs(resources).items():
        entries = future.result(30)
        found[f"{resource.restype.name} {resource.name}"] = {
            name: str(entry.value) for name, entry in sorted(entries.items()) if entry.source in DYNAMIC_SOURCES
        }
    return found
