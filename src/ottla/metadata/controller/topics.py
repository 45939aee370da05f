"""Decides on CreateTopics: checks names, counts, assignments and settings, and places replicas. Pure.

Each topic of a request succeeds or fails on its own. Only a request that would write too many records is refused as a whole.
Deletion and growth have their own files, and are exported from here too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.config.topic import validate_topic_settings
from ottla.config.values import InvalidConfig
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import topic_name_fault
from ottla.metadata.controller.decision import ITSELF, Asker, Decision
from ottla.metadata.controller.mutation_quota import Mutations
from ottla.metadata.controller.new_partitions import (
    RECORDS_PER_REQUEST_MAX,
    check_assignment,
    new_partition,
    place_partitions,
)
from ottla.metadata.controller.partition_growth import create_partitions
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.controller.topic_deletion import delete_topics
from ottla.metadata.controller.topic_settings import effective_settings
from ottla.metadata.image.image import ResourceType
from ottla.metadata.image.to_records import partition_record
from ottla.metadata.image.topics import PartitionState
from ottla.wire.base import Message
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.metadata_records import ConfigRecord, TopicRecord

__all__ = ["create_partitions", "create_topics", "delete_topics"]

_DEFAULT = -1
_METADATA_TOPIC = "__cluster_metadata"


def create_topics(
    state: ControllerState, request: CreateTopicsRequest, now_ms: int, asker: Asker = ITSELF
) -> Decision[CreateTopicsResponse]:
    """Create the topics of the request; with `validate_only`, write nothing."""
    _check_size(state, request)
    counts = Counter(topic.name for topic in request.topics)
    taken = _collision_names(state)
    results: list[CreatableTopicResult] = []
    records: list[Message] = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if counts[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {topic.name} comes more than once in the request")
            _check_name(state, topic.name, taken)
            result, topic_records = _create(state, topic, asker.mutations)
        except KafkaError as error:
            results.append(CreatableTopicResult(name=topic.name, error_code=error.code, error_message=str(error)))
            continue
        results.append(result)
        records += topic_records
    if len(records) > RECORDS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"the request would write {len(records)} records at once, and {RECORDS_PER_REQUEST_MAX} is the most: split it",
        )
    return Decision(CreateTopicsResponse(topics=results), () if request.validate_only else records)


def _check_size(state: ControllerState, request: CreateTopicsRequest) -> None:
    """Refuse a request for more partitions than fit into one write, before any is placed."""
    partitions = 0
    for topic in request.topics:
        if topic.assignments:
            partitions += len(topic.assignments)
        else:
            partitions += state.settings.num_partitions if topic.num_partitions == _DEFAULT else max(topic.num_partitions, 0)
    if partitions > RECORDS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"the request asks for {partitions} partitions, and {RECORDS_PER_REQUEST_MAX} at once is the most: split it",
        )


def _check_name(state: ControllerState, name: str, taken: dict[str, str]) -> None:
    if name == _METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is the cluster's metadata log and cannot be created as a topic")
    if name in state.image.topics.by_name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists already")
    if (fault := topic_name_fault(name)) is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if (other := taken.get(name.replace(".", "_"))) is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic {name} would be taken for topic {other} in the names of metrics, where '.' and '_' are the same",
        )


def _collision_names(state: ControllerState) -> dict[str, str]:
    """Topics that have '.' or '_' in their names, by their name in metrics."""
    return {name.replace(".", "_"): name for name in state.image.topics.by_name if "." in name or "_" in name}


def _create(
    state: ControllerState, topic: CreatableTopic, mutations: Mutations | None
) -> tuple[CreatableTopicResult, list[Message]]:
    settings = _checked_settings(state, topic)
    partitions = _assigned(state, topic) if topic.assignments else _placed(state, topic)
    if mutations is not None:
        mutations.pay(len(partitions))
    topic_id = state.randomness.new_uuid()
    records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += [
        ConfigRecord(resource_type=int(ResourceType.TOPIC), resource_name=topic.name, name=name, value=value)
        for name, value in settings.items()
    ]
    version = state.image.metadata_version
    records += [partition_record(topic_id, index, partition, version) for index, partition in enumerate(partitions)]
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=[
            CreatableTopicConfigs(name=each.name, value=each.value, config_source=each.source)
            for each in effective_settings(state, settings)
        ],
    )
    return result, records


def _checked_settings(state: ControllerState, topic: CreatableTopic) -> dict[str, str]:
    settings: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"topic {topic.name}: {config.name} has no value; leave it out instead")
        settings[config.name] = config.value
    try:
        validate_topic_settings(settings, state.settings.topic_defaults)
    except InvalidConfig as invalid:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"topic {topic.name}: {invalid}") from None
    return settings


def _placed(state: ControllerState, topic: CreatableTopic) -> list[PartitionState]:
    count, replication_factor = topic.num_partitions, topic.replication_factor
    if replication_factor < _DEFAULT or replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"topic {topic.name} cannot have {replication_factor} replicas: ask for one or more, or -1 for the default",
        )
    if count < _DEFAULT or count == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name} cannot have {count} partitions: ask for one or more, or -1 for the default",
        )
    return place_partitions(
        state,
        state.settings.num_partitions if count == _DEFAULT else count,
        state.settings.default_replication_factor if replication_factor == _DEFAULT else replication_factor,
    )


def _assigned(state: ControllerState, topic: CreatableTopic) -> Sequence[PartitionState]:
    """The partitions with the replicas that the request assigns."""
    if topic.replication_factor != _DEFAULT or topic.num_partitions != _DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"topic {topic.name} comes with an assignment of replicas: its numbers of partitions and replicas must be -1 then",
        )
    partitions: dict[int, PartitionState] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in partitions:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"topic {topic.name}: partition {index} is assigned more than once"
            )
        check_assignment(state, f"topic {topic.name}, partition {index}", assignment.broker_ids, replication_factor)
        replication_factor = len(assignment.broker_ids)
        partitions[index] = new_partition(
            state, assignment.broker_ids, ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"topic {topic.name}, partition {index}"
        )
    if sorted(partitions) != list(range(len(partitions))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"topic {topic.name}: the assigned partitions must be numbered from 0 without a gap, not {sorted(partitions)[:20]}",
        )
    return [partitions[index] for index in range(len(partitions))]
