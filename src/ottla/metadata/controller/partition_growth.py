"""Decides on CreatePartitions: adds partitions to topics, placed or assigned. Pure. The number of partitions never shrinks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.decision import ITSELF, Asker, Decision
from ottla.metadata.controller.mutation_quota import Mutations
from ottla.metadata.controller.new_partitions import (
    RECORDS_PER_REQUEST_MAX,
    check_assignment,
    new_partition,
    place_partitions,
)
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.image.to_records import partition_record
from ottla.metadata.image.topics import PartitionState, Topic
from ottla.wire.base import Message
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


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
