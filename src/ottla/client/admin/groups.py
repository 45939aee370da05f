"""Groups: list, delete, remove members (ListGroups, DeleteGroups, LeaveGroup)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from ottla.client.admin.checks import text, texts
from ottla.client.admin.group_descriptions import describe_consumer_groups
from ottla.client.admin.requests import group_refused, raise_refused, refuse_older, refused_or
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster
from ottla.client_core.coordinators import CoordinatorKind
from ottla.errors import ArgumentError, KafkaError
from ottla.wire.api_table import ApiKey
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

_CONSUMER_PROTOCOL = "consumer"
_STATES_SINCE_VERSION, _TYPES_SINCE_VERSION = 4, 5


class GroupListing(NamedTuple):
    """A group in `list_groups`."""

    group_id: str
    protocol: str
    """`consumer` for consumer groups; an empty text for a simple group, which only commits offsets."""
    state: str
    type: str
    """`Classic`, `Consumer`, `Share` or `Streams`; an empty text from brokers before 3.7."""
    coordinator: int
    """The broker that listed it."""

    @property
    def is_of_consumers(self) -> bool:
        """Whether it is a consumer group of either protocol, or a simple group."""
        return self.type in ("", "Classic", "Consumer") and self.protocol in (_CONSUMER_PROTOCOL, "")


class MemberToRemove(NamedTuple):
    """A member to remove: by its member id, or by its group.instance.id."""

    group_instance_id: str | None = None
    member_id: str = ""


async def list_groups(
    cluster: Cluster,
    *,
    states: Iterable[str] = (),
    types: Iterable[str] = (),
    protocols: Iterable[str] | None = None,
) -> list[GroupListing]:
    """The groups of the cluster that the principal may see, limited to states, types and protocol types.

    The names are Kafka's: states `Stable`, `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Assigning`, `Reconciling`,
    `Dead`; types `Classic`, `Consumer`, `Share`, `Streams`; in upper or lower case.
    """
    found = await cluster.each_broker(_asking(cluster, states, types, protocols))
    return _by_id(found.values())


async def list_reachable_groups(
    cluster: Cluster, *, states: Iterable[str] = (), types: Iterable[str] = ()
) -> tuple[list[GroupListing], dict[int, KafkaError]]:
    """Like `list_groups`, but of the brokers that answer; and why others do not, by broker."""
    found = await cluster.each_broker_or_error(_asking(cluster, states, types, None))
    errors = {broker: answer for broker, answer in found.items() if isinstance(answer, KafkaError)}
    return _by_id(answer for answer in found.values() if not isinstance(answer, KafkaError)), errors


def _by_id(answers: Iterable[list[GroupListing]]) -> list[GroupListing]:
    # Both coordinators may list a group that moves from one to the other during our requests.
    found = {each.group_id: each for listed in answers for each in listed}
    return [found[group_id] for group_id in sorted(found)]


def _asking(
    cluster: Cluster, states: Iterable[str], types: Iterable[str], protocols: Iterable[str] | None
) -> Callable[[int], Awaitable[list[GroupListing]]]:
    """The function that asks a broker for its groups."""
    state_names, type_names = texts(states, "states"), texts(types, "types")
    allowed = None if protocols is None else set(protocols)
    version = _TYPES_SINCE_VERSION if type_names else _STATES_SINCE_VERSION if state_names else 0

    async def ask(broker_id: int) -> list[GroupListing]:
        await refuse_older(cluster, broker_id, ApiKey.LIST_GROUPS, version, f"groups by {'type' if type_names else 'state'}")
        request = ListGroupsRequest(states_filter=state_names, types_filter=type_names)
        response: ListGroupsResponse = await cluster.once(broker_id, request)
        raise_refused(response.error_code, f"broker {broker_id} cannot list its groups")
        return [
            # Brokers before 4.0 write types in lower case.
            GroupListing(each.group_id, each.protocol_type, each.group_state, each.group_type.capitalize(), broker_id)
            for each in response.groups
            if allowed is None or each.protocol_type in allowed
        ]

    return ask


async def list_consumer_groups(
    cluster: Cluster, *, states: Iterable[str] = (), types: Iterable[str] = ()
) -> list[GroupListing]:
    """The consumer groups of either protocol, and simple groups, which only commit offsets."""
    return [each for each in await list_groups(cluster, states=states, types=types) if each.is_of_consumers]


async def delete_consumer_groups(cluster: Cluster, group_ids: Iterable[str]) -> Results[str, None]:
    """Delete groups without members, with their committed offsets."""
    wanted = texts(group_ids, "group_ids")

    async def ask(broker_id: int, ids: list[str]) -> dict[str, KafkaError | None]:
        response: DeleteGroupsResponse = await cluster.once(broker_id, DeleteGroupsRequest(groups_names=ids))
        return {
            each.group_id: group_refused(each.error_code, each.group_id, f"group {each.group_id} was not deleted")
            if each.error_code
            else None
            for each in response.results
        }

    return results_for(wanted, await cluster.by_coordinator(CoordinatorKind.GROUP, wanted, ask))


async def remove_members(
    cluster: Cluster, group_id: str, members: Iterable[MemberToRemove | str] | None = None, *, reason: str = ""
) -> Results[MemberToRemove, None]:
    """Remove members of a group by `group.instance.id`, or by member id as `MemberToRemove(member_id=…)`; None: all members."""
    text(group_id, "group_id")
    if members is None:
        described = (await describe_consumer_groups(cluster, [group_id]))[group_id]
        wanted = [MemberToRemove(each.group_instance_id, each.member_id) for each in described.members]
    else:
        if isinstance(members, str):
            raise TypeError(f"members must be a list, not the single value {members!r}: write [{members!r}]")
        wanted = list(dict.fromkeys(_member(each) for each in members))
    if not wanted:
        return Results({})
    why = f"member was removed by an admin{': ' if reason else ''}{reason}"

    async def ask(broker_id: int, ids: list[str]) -> dict[str, dict[MemberToRemove, KafkaError | None] | KafkaError]:
        identities = [
            MemberIdentity(member_id=each.member_id, group_instance_id=each.group_instance_id, reason=why) for each in wanted
        ]
        response: LeaveGroupResponse = await cluster.once(broker_id, LeaveGroupRequest(group_id=group_id, members=identities))
        failed = refused_or(response.error_code, f"the members of group {group_id} were not removed", None, None)
        if failed is not None:
            return {group_id: failed}
        found: dict[MemberToRemove, KafkaError | None] = {}
        for each in response.members:
            key = next((one for one in wanted if _is_same(one, each.member_id, each.group_instance_id)), None)
            if key is not None:
                about = f"member {each.group_instance_id or each.member_id} of group {group_id} was not removed"
                found[key] = refused_or(each.error_code, about, None, None)
        return {group_id: found}

    outcome = (await cluster.by_coordinator(CoordinatorKind.GROUP, [group_id], ask))[group_id]
    if isinstance(outcome, KafkaError):
        raise outcome
    return results_for(wanted, outcome)


def _member(member: MemberToRemove | str) -> MemberToRemove:
    found = MemberToRemove(member) if isinstance(member, str) else member
    if not isinstance(found, MemberToRemove) or not (found.group_instance_id or found.member_id):
        raise ArgumentError(f"members: a member needs a group_instance_id or a member_id, not {member!r}")
    return found


def _is_same(wanted: MemberToRemove, member_id: str, instance_id: str | None) -> bool:
    if wanted.group_instance_id:
        return wanted.group_instance_id == instance_id
    return wanted.member_id == member_id
