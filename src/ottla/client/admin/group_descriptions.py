"""What groups look like: state, members, assignments (ConsumerGroupDescribe, DescribeGroups)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.admin.acl_types import AclOperation, operations_of
from ottla.client.admin.checks import texts
from ottla.client.admin.requests import group_refused, refused
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster
from ottla.client_core.coordinators import CoordinatorKind
from ottla.errors import DecodeError, KafkaError, UnsupportedVersionError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.consumer_protocol import read_assignment
from ottla.wire.messages import consumer_group_describe as new
from ottla.wire.messages import describe_groups as classic

_CONSUMER_PROTOCOL = "consumer"


class MemberDescription(NamedTuple):
    """A member of a consumer group. The last five are None or empty for members of the classic protocol."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target_assignment: tuple[TopicPartition, ...] | None = None
    """What the coordinator wants it to have."""
    member_epoch: int | None = None
    rack: str | None = None
    subscribed_topics: tuple[str, ...] = ()
    subscribed_pattern: str | None = None
    is_classic: bool | None = None
    """Whether a member of a `Consumer` group speaks the classic protocol; None where the coordinator does not tell."""


class ConsumerGroupDescription(NamedTuple):
    """A consumer group of either protocol."""

    group_id: str
    type: str
    """`Consumer` or `Classic`."""
    state: str
    assignor: str
    coordinator: int
    members: tuple[MemberDescription, ...]
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    authorized_operations: frozenset[AclOperation] | None = None

    @property
    def is_simple(self) -> bool:
        """Whether it only commits offsets, and never had members."""
        return self.type == "Classic" and not self.assignor and not self.members


class ClassicMemberDescription(NamedTuple):
    """A member of a classic group. Metadata and assignment are bytes whose format depends on the group's protocol type."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    metadata: bytes
    assignment: bytes


class ClassicGroupDescription(NamedTuple):
    """A classic group of any protocol type, such as `consumer` or `connect`."""

    group_id: str
    protocol: str
    state: str
    assignor: str
    coordinator: int
    members: tuple[ClassicMemberDescription, ...]
    authorized_operations: frozenset[AclOperation] | None = None


async def describe_consumer_groups(
    cluster: Cluster, group_ids: Iterable[str], *, include_authorized_operations: bool = False
) -> Results[str, ConsumerGroupDescription]:
    """Describe consumer groups of either protocol."""
    wanted = texts(group_ids, "group_ids")

    async def ask(broker_id: int, ids: list[str]) -> dict[str, ConsumerGroupDescription | KafkaError]:
        found: dict[str, ConsumerGroupDescription | KafkaError] = {}
        try:
            response: new.ConsumerGroupDescribeResponse = await cluster.once(
                broker_id,
                new.ConsumerGroupDescribeRequest(group_ids=ids, include_authorized_operations=include_authorized_operations),
            )
            found = {group.group_id: _consumer_group(group, broker_id) for group in response.groups}
        except UnsupportedVersionError:  # brokers before 3.7 have classic groups only
            pass
        rest = [each for each in ids if each not in found or _is_classic(found[each])]
        if rest:
            older = await _ask_classic(cluster, broker_id, rest, include_authorized_operations)
            found |= {group_id: _from_classic(group) for group_id, group in older.items()}
        return found

    return results_for(wanted, await cluster.by_coordinator(CoordinatorKind.GROUP, wanted, ask))


def _is_classic(answer: ConsumerGroupDescription | KafkaError) -> bool:
    return isinstance(answer, KafkaError) and answer.code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


async def describe_classic_groups(
    cluster: Cluster, group_ids: Iterable[str], *, include_authorized_operations: bool = False
) -> Results[str, ClassicGroupDescription]:
    """Describe classic groups of any protocol type, such as those of Kafka Connect's workers."""
    wanted = texts(group_ids, "group_ids")

    async def ask(broker_id: int, ids: list[str]) -> dict[str, ClassicGroupDescription | KafkaError]:
        return await _ask_classic(cluster, broker_id, ids, include_authorized_operations)

    return results_for(wanted, await cluster.by_coordinator(CoordinatorKind.GROUP, wanted, ask))


async def _ask_classic(
    cluster: Cluster, broker_id: int, ids: list[str], include_authorized_operations: bool
) -> dict[str, ClassicGroupDescription | KafkaError]:
    response: classic.DescribeGroupsResponse = await cluster.once(
        broker_id,
        classic.DescribeGroupsRequest(groups=ids, include_authorized_operations=include_authorized_operations),
    )
    found: dict[str, ClassicGroupDescription | KafkaError] = {}
    for group in response.groups:
        # Before v6 a coordinator answers with the state Dead if the group does not exist.
        code = group.error_code or (ErrorCode.GROUP_ID_NOT_FOUND if group.group_state == "Dead" else 0)
        found[group.group_id] = (
            group_refused(code, group.group_id, f"group {group.group_id}", group.error_message)
            if code
            else _classic_group(group, broker_id)
        )
    return found


def _classic_group(group: classic.DescribedGroup, broker_id: int) -> ClassicGroupDescription:
    return ClassicGroupDescription(
        group.group_id,
        group.protocol_type,
        group.group_state,
        group.protocol_data,
        broker_id,
        tuple(
            ClassicMemberDescription(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                bytes(member.member_metadata),
                bytes(member.member_assignment),
            )
            for member in group.members
        ),
        operations_of(group.authorized_operations),
    )


def _from_classic(group: ClassicGroupDescription | KafkaError) -> ConsumerGroupDescription | KafkaError:
    if isinstance(group, KafkaError):
        return group
    if group.protocol not in (_CONSUMER_PROTOCOL, ""):
        text = f"its protocol type is {group.protocol}, so it is no consumer group: use describe_classic_groups"
        return refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"group {group.group_id}", text)
    members = tuple(
        MemberDescription(
            member.member_id, member.group_instance_id, member.client_id, member.host, _assigned(member.assignment)
        )
        for member in group.members
    )
    return ConsumerGroupDescription(
        group.group_id,
        "Classic",
        group.state,
        group.assignor,
        group.coordinator,
        members,
        authorized_operations=group.authorized_operations,
    )


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions in a classic assignment; none for bytes that are not one."""
    if not data:
        return ()
    try:
        found = read_assignment(data).assigned_partitions
    except DecodeError:
        return ()
    return tuple(sorted(TopicPartition(topic.topic, each) for topic in found for each in topic.partitions))


def _consumer_group(group: new.DescribedGroup, broker_id: int) -> ConsumerGroupDescription | KafkaError:
    if group.error_code:
        return group_refused(group.error_code, group.group_id, f"group {group.group_id}", group.error_message)
    return ConsumerGroupDescription(
        group.group_id,
        "Consumer",
        group.group_state,
        group.assignor_name,
        broker_id,
        tuple(_new_member(member) for member in group.members),
        group.group_epoch,
        group.assignment_epoch,
        operations_of(group.authorized_operations),
    )


def _new_member(member: new.Member) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        member.member_epoch,
        member.rack_id,
        tuple(member.subscribed_topic_names),
        member.subscribed_topic_regex,
        None if member.member_type < 0 else member.member_type == 0,
    )


def _partitions(assignment: new.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(TopicPartition(topic.topic_name, each) for topic in assignment.topic_partitions for each in topic.partitions)
    )
