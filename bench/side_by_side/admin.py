"""Creates, alters and deletes topics over one raw connection, the same way on both sides. Avoids a Java start per topic."""

import re
import time
from collections.abc import Mapping
from pathlib import Path

from bench.side_by_side.errors import AdminFailed
from tests.support.peers.raw_client import RawClient
from tests.support.servers.kafka_server import KafkaServer

from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

CREATE_VERSION, DELETE_VERSION, ALTER_VERSION, METADATA_VERSION = 7, 6, 1, 12
TOPIC_RESOURCE = 2
WAIT_S = 60
POLL_S = 0.02


def create_topic(server: KafkaServer, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
    """Create a topic and wait until every partition has a leader, so that loads do not measure the election."""
    settings = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
    with RawClient.to(server.bootstrap, timeout_s=WAIT_S) as client:
        answer = client.request(CreateTopicsRequest(topics=[topic]), CREATE_VERSION).topics[0]
        if answer.error_code:
            raise AdminFailed(f"{server.name} did not create {name}: error {answer.error_code}, {answer.error_message}")
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        deadline = time.monotonic() + WAIT_S
        while True:
            found = client.request(request, METADATA_VERSION).topics[0]
            if not found.error_code and sum(each.leader_id >= 0 for each in found.partitions) == partitions:
                return
            if time.monotonic() > deadline:
                raise AdminFailed(f"{server.name} gave {name} no leaders within {WAIT_S} s")
            time.sleep(POLL_S)


def delete_topic(server: KafkaServer, name: str) -> None:
    """Delete a topic and wait until its files are gone, so that they are not flushed while the other side is measured."""
    with RawClient.to(server.bootstrap, timeout_s=WAIT_S) as client:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=WAIT_S * 1000)
        answer = client.request(request, DELETE_VERSION).responses[0]
    if answer.error_code:
        raise AdminFailed(f"{server.name} did not delete {name}: error {answer.error_code}, {answer.error_message}")
    deadline = time.monotonic() + WAIT_S
    while any(_folders(server.data_dir, name)):
        if time.monotonic() > deadline:
            raise AdminFailed(f"{server.name} still has files of {name} {WAIT_S} s after its deletion")
        time.sleep(POLL_S)


def alter_topic(server: KafkaServer, name: str, configs: Mapping[str, str]) -> None:
    """Change settings of a topic. The response comes when the change is committed."""
    settings = [AlterableConfig(name=key, config_operation=0, value=value) for key, value in configs.items()]
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configs=settings)
    with RawClient.to(server.bootstrap, timeout_s=WAIT_S) as client:
        answer = client.request(IncrementalAlterConfigsRequest(resources=[resource]), ALTER_VERSION).responses[0]
    if answer.error_code:
        raise AdminFailed(f"{server.name} did not alter {name}: error {answer.error_code}, {answer.error_message}")


def _folders(data_dir: Path, name: str) -> list[Path]:
    """The topic's partition folders, also those renamed `NAME-N.UUID-delete`."""
    pattern = re.compile(rf"{re.escape(name)}-\d+(\..*)?")
    return [path for path in data_dir.iterdir() if pattern.fullmatch(path.name)]
