"""Builds the records of consumer groups (types 3 to 8 and 16 of __consumer_offsets). `replaying.py` applies them."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordinator.contract import CoordinatorRecord, put, tombstone
from ottla.coordinator.groups.consumer.member import ConsumerMember, EpochsOf, Partitions
from ottla.wire.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """The member's identity and subscription."""
    classic = member.classic
    return put(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.topics),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=None
            if classic is None
            else ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=[ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols],
            ),
        ),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return put(
        ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    )


def target_record(group_id: str, member_id: str, target: Partitions) -> CoordinatorRecord:
    return put(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=list(partitions)) for topic_id, partitions in target.items()
            ]
        ),
    )


def target_epoch_record(group_id: str, epoch: int, wall_ms: int) -> CoordinatorRecord:
    """The epoch of the target assignment. Written after the target records of the members."""
    return put(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=wall_ms),
    )


def current_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """The member's epoch and its partitions."""
    return put(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=int(member.state),
            assigned_partitions=_with_epochs(member.assigned),
            partitions_pending_revocation=_with_epochs(member.revoking),
        ),
    )


def _with_epochs(held: EpochsOf) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic_id, epochs in held.items()
    ]


def regex_record(group_id: str, regex: str, topics: Iterable[str], version: int, wall_ms: int) -> CoordinatorRecord:
    """The topics that match a regular expression, in one version of the metadata."""
    return put(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(topics=list(topics), version=version, timestamp=wall_ms),
    )


# -- Tombstones


def no_member(group_id: str, member_id: str) -> CoordinatorRecord:
    return tombstone(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def no_target(group_id: str, member_id: str) -> CoordinatorRecord:
    return tombstone(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def no_current(group_id: str, member_id: str) -> CoordinatorRecord:
    return tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def no_regex(group_id: str, regex: str) -> CoordinatorRecord:
    return tombstone(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex))


def no_partition_metadata(group_id: str) -> CoordinatorRecord:
    """The tombstone of the record that Kafka 4.0 and older wrote instead of the metadata hash."""
    return tombstone(ConsumerGroupPartitionMetadataKey(group_id=group_id))


def without_member(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The tombstones of one member, in the order that replay needs."""
    return [no_current(group_id, member_id), no_target(group_id, member_id), no_member(group_id, member_id)]


def without_group(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> list[CoordinatorRecord]:
    """The tombstones of a group, in the order that replay needs."""
    members = list(member_ids)
    return [
        *(no_current(group_id, each) for each in members),
        *(no_target(group_id, each) for each in members),
        tombstone(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(no_member(group_id, each) for each in members),
        *(no_regex(group_id, each) for each in regexes),
        no_partition_metadata(group_id),
        tombstone(ConsumerGroupMetadataKey(group_id=group_id)),
    ]
