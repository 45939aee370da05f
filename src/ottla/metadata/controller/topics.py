"""Decides on CreateTopics, DeleteTopics and CreatePartitions. Pure.

Checks names, counts, assignments and settings, and places replicas. Each topic of a request succeeds or fails on its own. Only
a request that would write too many records is refused as a whole. Deletion, by name or by id, is one record: it removes the
topic and its settings from the image. The number of partitions never shrinks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.config.topic import validate_topic_settings
from ottla.config.values import InvalidConfig
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid, topic_name_fault, uuid_text
from ottla.metadata.controller.decision import ITSELF, Asker, Decision
from ottla.metadata.controller.mutation_quota import Mutations
from ottla.metadata.controller.new_partitions import (
    RECORDS_PER_REQUEST_MAX,
    check_assignment,
    new_partition,
    place_partitions,
)
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.controller.topic_settings import effective_settings
from ottla.metadata.image.image import ResourceType
from ottla.metadata.image.to_records import partition_record
from ottla.metadata.image.topics import PartitionState, Topic
from ottla.wire.base import Message
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.wire.messages.metadata_records import ConfigRecord, RemoveTopicRecord, TopicRecord

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


_DELETION_CODE_SINCE = 3
_NEWEST = Asker(6)


def delete_topics(
    state: ControllerState, request: DeleteTopicsRequest, now_ms: int, asker: Asker = _NEWEST
) -> Decision[DeleteTopicsResponse]:
    """Delete the topics of a request."""
    if not state.settings.delete_topic_enable:
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED if asker.version >= _DELETION_CODE_SINCE else ErrorCode.INVALID_REQUEST,
            "topics cannot be deleted here: delete.topic.enable is false on the controller",
        )
    wanted = [DeleteTopicState(name=name) for name in request.topic_names] + list(request.topics)
    counts = Counter((each.name, each.topic_id) for each in wanted)
    results: list[DeletableTopicResult] = []
    records: list[Message] = []
    by_id = {each.topic_id for each in wanted if each.name is None}
    by_name = {each.name for each in wanted if each.topic_id == ZERO_UUID}
    for name, topic_id in counts:
        result = DeletableTopicResult(name=name, topic_id=topic_id)
        try:
            if counts[(name, topic_id)] > 1 and (name is None or topic_id == ZERO_UUID):
                raise _refused(f"{name or uuid_text(topic_id)} comes more than once in the request")
            topic = _find(state, name, topic_id)
            result.name, result.topic_id = topic.name, topic.id
            if topic.id in by_id and topic.name in by_name:
                raise _refused(f"topic {topic.name} comes by name and by id, which is twice")
            if asker.mutations is not None:
                asker.mutations.pay(len(topic.partitions))
        except KafkaError as error:
            result.error_code, result.error_message = error.code, str(error)
        else:
            records.append(RemoveTopicRecord(topic_id=topic.id))
        results.append(result)
    if len(records) > RECORDS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"at most {RECORDS_PER_REQUEST_MAX} topics can be deleted at once")
    return Decision(DeleteTopicsResponse(responses=results), records)


def _find(state: ControllerState, name: str | None, topic_id: Uuid) -> Topic:
    topics = state.image.topics
    if name is None:
        if topic_id == ZERO_UUID:
            raise _refused("a topic must be named by its name or by its id, and neither is given")
        if (by_id := topics.by_id.get(topic_id)) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {uuid_text(topic_id)}")
        return by_id
    if topic_id != ZERO_UUID:
        raise _refused(f"topic {name} is named by its name and by an id: give one of them")
    if (by_name := topics.by_name.get(name)) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r} to delete")
    return by_name


def _refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)


def create_partitions(
    state: ControllerState, request: CreatePartitionsRequest, now_ms: int, asker: Asker = ITSELF
) -> Decision[CreatePartitionsResponse]:
    """Add partitions to the topics of the request; with `validate_only`, write nothing."""
    counts = Counter(topic.name for topic in request.topics)
    results: list[CreatePartitionsTopicResult] = []
    records: list[Message] = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        result = CreatePartitionsTopicResult(name=topic.name)
        try:
            if counts[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {topic.name} comes more than once in the request")
            records += _grow(state, topic, RECORDS_PER_REQUEST_MAX - len(records), asker.mutations)
        except KafkaError as error:
            if error.code == ErrorCode.POLICY_VIOLATION:
                raise
            result.error_code, result.error_message = error.code, str(error)
        results.append(result)
    return Decision(CreatePartitionsResponse(results=results), () if request.validate_only else records)


def _grow(
    state: ControllerState, wanted: CreatePartitionsTopic, records_left: int, mutations: Mutations | None
) -> list[Message]:
    topic = state.image.topics.by_name.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {wanted.name}")
    existing = len(topic.partitions)
    if wanted.count <= existing:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name} has {existing} partitions, and {wanted.count} is not more: a topic can only grow",
        )
    added = wanted.count - existing
    if wanted.assignments is not None and len(wanted.assignments) != added:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"topic {topic.name} would get {added} new partitions, and the request assigns {len(wanted.assignments)}",
        )
    if added > records_left:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"the request asks for more than {RECORDS_PER_REQUEST_MAX} partitions at once: split it",
        )
    if mutations is not None:
        mutations.pay(added)
    version = state.image.metadata_version
    return [
        partition_record(topic.id, index, partition, version)
        for index, partition in enumerate(_new_partitions(state, topic, wanted, added), start=existing)
    ]


def _new_partitions(
    state: ControllerState, topic: Topic, wanted: CreatePartitionsTopic, added: int
) -> Sequence[PartitionState]:
    # Apache Kafka also counts replicas that are being removed: what it adds during a reassignment has too many replicas.
    replication_factor = len(topic.partitions[0].final_replicas)
    if wanted.assignments is None:
        return place_partitions(state, added, replication_factor)
    partitions: list[PartitionState] = []
    for index, assignment in enumerate(wanted.assignments, start=len(topic.partitions)):
        what = f"topic {topic.name}, partition {index}"
        check_assignment(state, what, assignment.broker_ids, replication_factor)
        partitions.append(new_partition(state, assignment.broker_ids, ErrorCode.INVALID_REPLICA_ASSIGNMENT, what))
    return partitions
