"""A replica's settings from a node's, and the check that a node is the only voter of its quorum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors import OttlaError
from ottla.raft.settings import RaftSettings
from ottla.raft.voters import ReplicaKey, VoterSet

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig


_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class NotAQuorumOfOne(OttlaError):
    """This node is not the only voter, so it cannot lead at once."""


def check_alone(voters: VoterSet, local: ReplicaKey, folder: str) -> None:
    """Raise `NotAQuorumOfOne`, with a remedy, unless `local` is the only voter."""
    if voters.is_only_voter(local):
        return
    if not len(voters):
        raise NotAQuorumOfOne(
            f"{folder} knows no voters: format the directory with --standalone, or set controller.quorum.voters"
        )
    if len(voters) == 1:
        known = next(iter(voters)).key
        raise NotAQuorumOfOne(
            f"the only voter of this quorum is node {known}, and this is node {local}: correct node.id, or "
            "start with the directory that the quorum was formatted with"
        )
    raise NotAQuorumOfOne(
        f"this quorum has {len(voters)} voters ({', '.join(map(str, voters.ids))}), and node {local} cannot lead it "
        "alone: start the other voters too"
    )


def _own_addresses(config: BrokerConfig) -> set[tuple[str, int]]:
    """Where this node's own controller can be: a replica does not fetch from itself."""
    names = config.controller_listener_names
    mine = [*(each for each in config.listeners if each.name in names), *config.advertised_controller_listeners]
    return {(host, each.port) for each in mine for host in (each.host, *_LOOPBACK)} if config.is_controller else set()


def raft_settings(config: BrokerConfig, cluster_id: str | None) -> RaftSettings:
    """The replica's settings, from `controller.quorum.*`."""
    voters = config.controller_quorum_voters
    servers = config.controller_quorum_bootstrap_servers or tuple((host, port) for _, host, port in voters)
    mine = {(host, port) for voter_id, host, port in voters if voter_id == config.node_id} | _own_addresses(config)
    return RaftSettings(
        cluster_id,
        config.controller_listener_names[0],
        {},
        tuple(server for server in servers if server not in mine),
        can_be_voter=config.is_controller,
        election_timeout_ms=config.controller_quorum_election_timeout_ms,
        election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
        fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
        retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
        fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
        fetch_snapshot_max_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
        auto_join=config.controller_quorum_auto_join_enable,
    )
