"""Descriptions of groups, asked from their coordinators: ConsumerGroupDescribe, else DescribeGroups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ottla.cli.common.cluster import Broker, Cluster, refusal
from ottla.cli.common.coordinators import CoordinatorKind, by_coordinator
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode, error_name
from ottla.link import Link
from ottla.wire.apis import ApiKey
from ottla.wire.base import Bytes
from ottla.wire.consumer_protocol import read_assignment
from ottla.wire.messages import consumer_group_describe as new
from ottla.wire.messages import describe_groups as classic

Assignment = dict[str, list[int]]
"""Partitions by topic, both in order."""

DEAD = "Dead"


@dataclass(slots=True)
class MemberView:
    """A member of a group. Fields that only the new protocol has are None in classic groups."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: Assignment
    target: Assignment | None = None
    epoch: int | None = None
    is_upgraded: bool | None = None
    """False for a member of the classic protocol in a group of the new one."""

    @property
    def partition_count(self) -> int:
        return sum(map(len, self.assignment.values()))


@dataclass(slots=True)
class GroupView:
    """A group. The epochs are those of the new protocol, None in classic groups."""

    id: str
    type: str
    state: str
    assignor: str
    coordinator: Broker
    epoch: int | None = None
    target_epoch: int | None = None
    members: list[MemberView] = field(default_factory=list)


def no_such_group(group_id: str) -> KafkaError:
    code = ErrorCode.GROUP_ID_NOT_FOUND
    text = f"group {group_id} does not exist ({error_name(code)}): `ottla groups list` shows all groups"
    return KafkaError(code, text)


async def describe_groups(cluster: Cluster, ids: Iterable[str]) -> dict[str, GroupView | KafkaError]:
    """Each of the groups, or the error that its coordinator answered."""

    async def ask(broker_id: int, wanted: list[str]) -> dict[str, GroupView | KafkaError]:
        link = await cluster.link_to(broker_id)
        coordinator = cluster.brokers.get(broker_id)
        if coordinator is None:  # it left after we found it: retriable, the next attempt finds the new coordinator
            gone = refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"coordinator {broker_id} has left the cluster")
            return dict.fromkeys(wanted, gone)
        found: dict[str, GroupView | KafkaError] = {}
        if link.versions.has(ApiKey.CONSUMER_GROUP_DESCRIBE):
            found = await _ask_new(link, coordinator, wanted)
        left = [each for each in wanted if each not in found]
        return found | (await _ask_classic(link, coordinator, left) if left else {})

    return await by_coordinator(cluster, CoordinatorKind.GROUP, ids, ask)


async def _ask_new(link: Link, coordinator: Broker, ids: Sequence[str]) -> dict[str, GroupView | KafkaError]:
    """Those of the groups that use the new protocol. A coordinator answers GROUP_ID_NOT_FOUND for classic groups."""
    response: new.ConsumerGroupDescribeResponse = await link.request(new.ConsumerGroupDescribeRequest(group_ids=list(ids)))
    found: dict[str, GroupView | KafkaError] = {}
    for group in response.groups:
        if group.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            continue
        if group.error_code:
            found[group.group_id] = refusal(group.error_code, f"group {group.group_id}", group.error_message)
            continue
        members = [
            MemberView(
                id=each.member_id,
                instance_id=each.instance_id,
                client_id=each.client_id,
                host=each.client_host,
                assignment=_from_topics(each.assignment.topic_partitions),
                target=_from_topics(each.target_assignment.topic_partitions),
                epoch=each.member_epoch,
                is_upgraded=None if each.member_type < 0 else each.member_type == 1,
            )
            for each in group.members
        ]
        found[group.group_id] = GroupView(
            id=group.group_id,
            type="Consumer",
            state=group.group_state,
            assignor=group.assignor_name,
            coordinator=coordinator,
            epoch=group.group_epoch,
            target_epoch=group.assignment_epoch,
            members=members,
        )
    return found


async def _ask_classic(link: Link, coordinator: Broker, ids: Sequence[str]) -> dict[str, GroupView | KafkaError]:
    response: classic.DescribeGroupsResponse = await link.request(classic.DescribeGroupsRequest(groups=list(ids)))
    found: dict[str, GroupView | KafkaError] = {}
    for group in response.groups:
        # Before version 6 of the API, coordinators answer with the state Dead if the group does not exist.
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (not group.error_code and group.group_state == DEAD):
            found[group.group_id] = no_such_group(group.group_id)
            continue
        if group.error_code:
            found[group.group_id] = refusal(group.error_code, f"group {group.group_id}", group.error_message)
            continue
        is_of_consumers = group.protocol_type == "consumer"
        members = [
            MemberView(
                id=each.member_id,
                instance_id=each.group_instance_id,
                client_id=each.client_id,
                host=each.client_host,
                assignment=_from_bytes(each.member_assignment) if is_of_consumers else {},
            )
            for each in group.members
        ]
        found[group.group_id] = GroupView(
            group.group_id, "Classic", group.group_state, group.protocol_data, coordinator, members=members
        )
    return found


def _from_topics(topics: Iterable[new.TopicPartitions]) -> Assignment:
    return {each.topic_name: sorted(each.partitions) for each in sorted(topics, key=lambda each: each.topic_name)}


def _from_bytes(content: Bytes) -> Assignment:
    """What the leader of a classic group assigned to a member."""
    try:
        message = read_assignment(bytes(content))
    except OttlaError:
        return {}  # nothing is assigned, or the client has its own format
    assignment: Assignment = {}
    for each in sorted(message.assigned_partitions, key=lambda each: each.topic):
        assignment.setdefault(each.topic, []).extend(sorted(each.partitions))
    return assignment
