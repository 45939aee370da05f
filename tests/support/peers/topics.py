"""Topics for tests, created and described with raw requests instead of a client library's admin client."""

import time
from collections.abc import Callable, Mapping

from tests.support.peers.raw_client import RawClient
from tests.support.servers.kafka_server import HANG_S

from ottla.ids import Uuid
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic

LATEST = -1


def make_topic(bootstrap: str, name: str, partitions: int = 1, configs: Mapping[str, object] | None = None) -> Uuid:
    """Create a topic; returns its id when every partition has a leader."""
    settings = [CreatableTopicConfig(name=key, value=str(value)) for key, value in (configs or {}).items()]
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
    with RawClient.to(bootstrap) as client:
        (made,) = client.request(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 7).topics
        assert made.error_code == 0, f"{name} was not made: error {made.error_code}, {made.error_message}"
    await_leaders(bootstrap, name, partitions)
    topic_id: Uuid = made.topic_id
    return topic_id


def describe_topic(bootstrap: str, name: str) -> MetadataResponseTopic:
    """The Metadata response for a topic; does not create it."""
    with RawClient.to(bootstrap) as client:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        (topic,) = client.request(request, 12).topics
    assert isinstance(topic, MetadataResponseTopic)
    return topic


def await_leaders(bootstrap: str, name: str, partitions: int | None = None, timeout_s: float = HANG_S) -> None:
    """Return when the topic has that many partitions (None: any) and their leaders answer: a leader may learn of it last."""

    def all_led() -> bool:
        topic = describe_topic(bootstrap, name)
        count = len(topic.partitions)
        if topic.error_code or not count or count != (partitions or count):
            return False
        asked = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(count)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=asked)])
        with RawClient.to(bootstrap) as client:
            (answer,) = client.request(request, 7).topics
        return not any(part.error_code for part in answer.partitions)

    await_true(all_led, f"{name} to have {partitions or 'its'} partitions with leaders", timeout_s)


def await_gone(bootstrap: str, name: str) -> None:
    """Return when the broker knows of no topic of that name."""
    await_true(lambda: describe_topic(bootstrap, name).error_code == 3, f"{name} to be gone")


def await_true(condition: Callable[[], bool], what: str, timeout_s: float = HANG_S) -> None:
    """Return when `condition` holds; an AssertionError that names `what` if it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}"
        time.sleep(0.02)
