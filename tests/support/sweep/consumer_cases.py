"""The cases of the coordinators' sweep about finding coordinators, groups of the new protocol, and their members' offsets."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.support.sweep.cases import every_version
from tests.support.sweep.offset_cases import OffsetCases
from tests.support.sweep.sweep import Case

from ottla.wire.apis import ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions as Owned
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest

MEMBER = "AAAAAAAAQACAAAAAAAAAAQ"
GROUP = "modern"
Make = Callable[[int], Message | None]


def finding_cases() -> Iterator[Case]:
    def finding(kind: int, *keys: str) -> Make:
        def make(version: int) -> Message | None:
            if version >= 4:
                return FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
            if len(keys) != 1 or (kind and not version):
                return None
            return FindCoordinatorRequest(key_type=kind, key=keys[0])

        return make

    for name, make in {
        "find a group's": finding(0, "g"),
        "find a transaction's": finding(1, "x"),
        "find several": finding(0, "g", "h", "g"),
        "find none": finding(0),
        "find one without a name": finding(0, ""),
        "find one of a kind that is not there": finding(9, "g"),
    }.items():
        yield from every_version(name, ApiKey.FIND_COORDINATOR, make)


def heartbeat(member_id: str = MEMBER, epoch: int = 0, group_id: str = GROUP, **extra: Any) -> ConsumerGroupHeartbeatRequest:
    if epoch == 0:
        extra = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["sweep"], "topic_partitions": []} | extra
    return ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch, **extra)


def consumer_cases(offsets: OffsetCases) -> Iterator[Case]:
    refusals: dict[str, Make] = {
        "heartbeat, no group": lambda _: heartbeat(group_id=""),
        "heartbeat, blank group": lambda _: heartbeat(group_id=" "),
        "heartbeat, no member": lambda v: heartbeat("") if v else None,
        "heartbeat to no group": lambda _: heartbeat(epoch=3, group_id="no such"),
        "leave no group": lambda _: heartbeat(epoch=-1, group_id="no such"),
        "join without a timeout": lambda _: heartbeat(rebalance_timeout_ms=-1),
        "join without topics": lambda _: heartbeat(subscribed_topic_names=None),
        "join with partitions": lambda _: heartbeat(topic_partitions=[Owned(partitions=[0])]),
        "join without a list of partitions": lambda _: heartbeat(topic_partitions=None),
        "join with an unknown assignor": lambda _: heartbeat(server_assignor="nonsense"),
        "join with an empty assignor": lambda _: heartbeat(server_assignor=""),
        "join with an empty instance": lambda _: heartbeat(instance_id=""),
        "join with an empty rack": lambda _: heartbeat(rack_id=""),
        "join with a wrong pattern": lambda v: heartbeat(subscribed_topic_regex="[") if v else None,
        "static leave of nobody": lambda _: heartbeat(epoch=-2, instance_id="i"),
        "static leave without an instance": lambda _: heartbeat(epoch=-2),
        "heartbeat in no epoch": lambda _: heartbeat(epoch=-5),
    }
    for name, make in refusals.items():
        yield from every_version(name, ApiKey.CONSUMER_GROUP_HEARTBEAT, make)
    yield from every_version("join", ApiKey.CONSUMER_GROUP_HEARTBEAT, lambda _: heartbeat())
    members: dict[str, Make] = {
        "heartbeat": lambda _: heartbeat(epoch=1),
        "heartbeat in a later epoch": lambda _: heartbeat(epoch=9),
        "heartbeat of somebody": lambda _: heartbeat("somebody", 1),
        "leave as somebody": lambda _: heartbeat("somebody", -1),
    }
    for name, make in members.items():
        yield from every_version(name, ApiKey.CONSUMER_GROUP_HEARTBEAT, make)
    yield from _described()
    yield from _offsets_of_members(offsets)
    yield from every_version("leave", ApiKey.CONSUMER_GROUP_HEARTBEAT, lambda _: heartbeat(epoch=-1))
    yield from every_version("list after leaving", ApiKey.LIST_GROUPS, lambda _: ListGroupsRequest())
    yield from every_version("delete the left", ApiKey.DELETE_GROUPS, lambda _: DeleteGroupsRequest(groups_names=[GROUP]))


def _described() -> Iterator[Case]:
    for name, groups in {
        "describe a consumer group": [GROUP],
        "describe a group of another kind": ["members"],
        "describe no consumer group": ["no such", ""],
    }.items():
        yield from every_version(
            name,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            lambda _, groups=groups: ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=True),
        )
    yield from every_version(
        "describe a group of the new protocol", ApiKey.DESCRIBE_GROUPS, lambda _: DescribeGroupsRequest(groups=[GROUP])
    )
    yield from every_version(
        "list consumer groups",
        ApiKey.LIST_GROUPS,
        lambda v: ListGroupsRequest(types_filter=["CONSUMER"], states_filter=["stable", "Reconciling"]) if v >= 5 else None,
    )
    yield from every_version("list both kinds", ApiKey.LIST_GROUPS, lambda _: ListGroupsRequest())


def _offsets_of_members(offsets: OffsetCases) -> Iterator[Case]:
    def commit(epoch: int, member_id: str = MEMBER) -> Make:
        return lambda v: offsets.commit(v, GROUP, {("sweep", 0): 5}, generation=epoch, member_id=member_id)

    def fetch(epoch: int, member_id: str | None = MEMBER) -> Make:
        def make(version: int) -> Message | None:
            if version < 9:
                return None
            request: OffsetFetchRequest = offsets.fetch(version, GROUP, sweep=[0])
            request.groups[0].member_id, request.groups[0].member_epoch = member_id, epoch
            return request

        return make

    for name, make in {
        "commit in the member's epoch": commit(1),
        "commit in an epoch to come": commit(2),
        "commit in no epoch": commit(-1),
        "commit in the first epoch": commit(0),
        "commit as somebody else": commit(1, "somebody"),
        "commit as nobody at all": commit(-1, ""),
    }.items():
        yield from every_version(name, ApiKey.OFFSET_COMMIT, make)
    for name, make in {
        "fetch in the member's epoch": fetch(1),
        "fetch in an epoch to come": fetch(2),
        "fetch as somebody": fetch(1, "somebody"),
        "fetch as nobody": fetch(-1, None),
    }.items():
        yield from every_version(name, ApiKey.OFFSET_FETCH, make)
    yield from every_version(
        "delete offsets of a consumer group", ApiKey.OFFSET_DELETE, lambda _: offsets.delete(GROUP, ("sweep", 0))
    )
    yield from every_version(
        "delete a consumer group", ApiKey.DELETE_GROUPS, lambda _: DeleteGroupsRequest(groups_names=[GROUP])
    )
