"""The replicas of the metadata log as commands show and name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import click

from ottla.cli.common.completion import complete_from_cluster
from ottla.client.admin.quorum import QuorumInfo, QuorumReplica, describe_metadata_quorum
from ottla.client.cluster import Cluster
from ottla.errors import OttlaError
from ottla.ids import ZERO_UUID, Uuid, uuid_parse, uuid_text

LEADER, FOLLOWER, OBSERVER = "leader", "follower", "observer"


class Row(NamedTuple):
    """One replica."""

    replica: QuorumReplica
    role: str
    lag: int
    """Records behind the leader."""
    endpoints: str


def quorum_rows(quorum: QuorumInfo) -> list[Row]:
    """The leader, then the other voters, then the observers."""
    end = next((each.log_end_offset for each in quorum.voters if each.id == quorum.leader_id), quorum.high_watermark)
    followers = [each for each in quorum.voters if each.id != quorum.leader_id]
    leaders = [each for each in quorum.voters if each.id == quorum.leader_id]
    roles = [(LEADER, leaders), (FOLLOWER, followers), (OBSERVER, list(quorum.observers))]
    return [
        Row(
            each,
            role,
            max(0, end - each.log_end_offset),
            ", ".join(f"{one.host}:{one.port}" for one in quorum.endpoints.get(each.id, ())),
        )
        for role, replicas in roles
        for each in replicas
    ]


def directory_of(replicas: tuple[QuorumReplica, ...], node_id: int, kind: str, given: str | None, remedy: str) -> Uuid:
    """The directory id of a replica: the one that was given, else that of the only `kind` with this node id."""
    if given is not None:
        return uuid_parse(given)
    found = [each.directory_id for each in replicas if each.id == node_id]
    if not found:
        there = ", ".join(str(each.id) for each in replicas) or "none"
        raise OttlaError(f"node {node_id} is not among the {kind}s of the quorum, which are {there}. {remedy}")
    if len(found) > 1:
        ids = " and ".join(map(uuid_text, found))
        raise OttlaError(f"node {node_id} is among the {kind}s with the directories {ids}: choose one with --directory-id")
    if found[0] == ZERO_UUID:
        raise OttlaError(
            f"node {node_id} has no directory id: the voters are fixed by controller.quorum.voters (kraft.version 0)"
        )
    return found[0]


def check_may_join(quorum: QuorumInfo, kraft_version: int, node_id: int, given: str | None) -> None:
    """Raise if the voters of this quorum cannot change, or if the node is one of them. `given`: its directory id, if named."""
    if kraft_version == 0 and any(each.directory_id == ZERO_UUID for each in quorum.voters):
        raise OttlaError(
            "the voters of this quorum are fixed by controller.quorum.voters (kraft.version 0): only quorums formatted with "
            "--standalone or --initial-controllers can change their voters. Raise kraft.version first, with "
            "`ottla features upgrade --feature kraft.version=1`"
        )
    voting = [each.directory_id for each in quorum.voters if each.id == node_id]
    waiting = any(each.id == node_id for each in quorum.observers)
    if voting and (not waiting if given is None else uuid_parse(given) in voting):
        raise OttlaError(f"node {node_id} is a voter already: `ottla quorum describe` shows the voters")


def _complete(pick: Callable[[QuorumInfo], tuple[QuorumReplica, ...]]) -> Callable[..., list[str]]:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        async def ids(cluster: Cluster) -> list[str]:
            return [str(each.id) for each in pick(await describe_metadata_quorum(cluster))]

        return complete_from_cluster(ctx, incomplete, ids)

    return complete


complete_voters = _complete(lambda quorum: quorum.voters)
complete_observers = _complete(lambda quorum: quorum.observers)
