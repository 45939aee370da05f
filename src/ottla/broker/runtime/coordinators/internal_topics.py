"""Creates internal topics when their first coordinator is looked for.

The broker's settings decide their partitions, replicas and topic settings (offsets.topic.*, transaction.state.log.*). They
cannot be created in a cluster with fewer brokers than replicas; the log line says which setting to change.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

if TYPE_CHECKING:
    from ottla.broker.services import Services
    from ottla.config.broker import BrokerConfig


logger = logging.getLogger("ottla.coordinator")


class InternalTopic(NamedTuple):
    """How an internal topic is created."""

    partitions: int
    replication_factor: int
    replication_setting: str
    configs: dict[str, str]


def internal_topic(name: str, config: BrokerConfig) -> InternalTopic | None:
    """How the internal topic `name` is created with these settings; None if it is not one that is created on demand."""
    if name == OFFSETS_TOPIC:
        return InternalTopic(
            config.offsets_topic_num_partitions,
            config.offsets_topic_replication_factor,
            "offsets.topic.replication.factor",
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTIONS_TOPIC:
        return InternalTopic(
            config.transaction_state_log_num_partitions,
            config.transaction_state_log_replication_factor,
            "transaction.state.log.replication.factor",
            {
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
            },
        )
    return None


def creatable(name: str, wanted: InternalTopic) -> CreatableTopic:
    """The topic in a CreateTopics request."""
    return CreatableTopic(
        name=name,
        num_partitions=wanted.partitions,
        replication_factor=wanted.replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in wanted.configs.items()],
    )


async def ensure_internal_topic(services: Services, name: str) -> None:
    """Create the topic unless it exists. Raises COORDINATOR_NOT_AVAILABLE, with the reason, if it cannot be created."""
    if services.metadata.topic(name) is not None:
        return
    wanted = internal_topic(name, services.settings.current)
    assert wanted is not None, f"{name} is not an internal topic"
    request = CreateTopicsRequest(topics=[creatable(name, wanted)])
    response = await services.channel.call(request)
    await services.loader.caught_up()
    result = response.topics[0]
    if result.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        return
    reason = f"the internal topic {name} cannot be created: {result.error_message}"
    if result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR:
        reason += (
            f". It needs {wanted.replication_factor} replicas: set {wanted.replication_setting} to the number of brokers "
            "of this cluster and restart, or start more brokers"
        )
    services.coordinators.complaints.log(logging.ERROR, f"{name} cannot be created", "%s", reason)
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, reason)
