"""What each role does by itself: the requests it sends, and what follows when a deadline passes. Returns the next deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.raft.connections import NEVER_MS
from ottla.raft.effects import Destination
from ottla.raft.election import NO_LEADER
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.prospective import Prospective
from ottla.raft.roles.resigned import Resigned
from ottla.raft.roles.unattached import Unattached
from ottla.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.raft.replica import Replica
    from ottla.wire.base import Message


def act(replica: Replica, now_ms: int) -> int:
    """Do what is due; returns the time by which to look again. The role may have changed: then act again."""
    role = replica.role
    if isinstance(role, Leader):
        return _lead(replica, role, now_ms)
    if isinstance(role, Resigned):
        return _resigned(replica, role, now_ms)
    if replica.is_stopping:
        return NEVER_MS
    if isinstance(role, Follower):
        return _follow(replica, role, now_ms)
    if isinstance(role, Candidate):
        return _stand(replica, role, now_ms)
    if isinstance(role, Prospective):
        return _sound_out(replica, role, now_ms)
    return _unattached(replica, role, now_ms)


def _unattached(replica: Replica, role: Unattached, now_ms: int) -> int:
    if not replica.may_stand:
        return _find_leader(replica, now_ms)
    if replica.is_only_voter or now_ms >= role.election_deadline_ms:
        replica.become_prospective(now_ms)
        return now_ms
    return min(role.election_deadline_ms, _find_leader(replica, now_ms))


def _sound_out(replica: Replica, role: Prospective, now_ms: int) -> int:
    voters = replica.voters
    if not replica.may_stand:
        replica.become_unattached(role.epoch, now_ms)
        return now_ms
    if role.would_win(voters) and now_ms >= role.yields_until_ms:
        replica.become_candidate(now_ms)
        return now_ms
    if role.has_lost(voters) or now_ms >= role.election_deadline_ms:
        if role.leader_id != NO_LEADER and role.leader_endpoints:
            replica.become_follower(role.epoch, role.leader_id, role.leader_endpoints, now_ms, role.fetch_deadline_ms)
        else:
            replica.become_unattached(role.epoch, now_ms)
        return now_ms
    again_ms = min(role.election_deadline_ms, _ask_for_votes(replica, (*role.granting, *role.rejecting), now_ms))
    return min(again_ms, role.yields_until_ms) if role.would_win(voters) else again_ms


def _stand(replica: Replica, role: Candidate, now_ms: int) -> int:
    voters = replica.voters
    if not replica.may_stand:
        replica.become_unattached(role.epoch + 1, now_ms)
        return now_ms
    if role.has_won(voters):
        replica.become_leader(now_ms)
        return now_ms
    if now_ms >= role.election_deadline_ms:
        replica.become_prospective(now_ms)
        return now_ms
    if role.has_lost(voters):
        return role.election_deadline_ms  # the timeout is random: the next candidate is likely another one
    return min(role.election_deadline_ms, _ask_for_votes(replica, (*role.granting, *role.rejecting), now_ms))


def _ask_for_votes(replica: Replica, answered: tuple[ReplicaKey, ...], now_ms: int) -> int:
    from ottla.raft.requests import vote  # late: a quorum of one asks nobody

    open_voters = [voter.key for voter in replica.voters if voter.key not in answered and not voter.key.matches(replica.local)]
    return _send_each(replica, open_voters, lambda voter: vote.build(replica, voter), now_ms)


def _lead(replica: Replica, role: Leader, now_ms: int) -> int:
    if replica.is_only_voter:
        if role.check_quorum_deadline_ms != NEVER_MS:
            replica.set_role(role._replace(check_quorum_deadline_ms=NEVER_MS))
        return NEVER_MS
    if role.check_quorum_deadline_ms == NEVER_MS:  # it was the only voter: the second one has a whole timeout to fetch
        role = role._replace(check_quorum_deadline_ms=now_ms + replica.settings.check_quorum_timeout_ms)
        replica.set_role(role)
    if now_ms >= role.check_quorum_deadline_ms:
        replica.become_resigned(now_ms)
        return now_ms
    if now_ms >= role.begin_epoch_deadline_ms:
        from ottla.raft.requests import begin_quorum_epoch  # late: a quorum of one tells nobody

        interval_ms = replica.settings.begin_epoch_interval_ms
        others = [
            voter.key
            for voter in replica.voters
            if voter.key.id != replica.local.id and now_ms - role.progress_of(voter.key).last_fetch_ms >= interval_ms
        ]
        _send_each(replica, others, lambda voter: begin_quorum_epoch.build(replica, voter), now_ms)
        role = role._replace(begin_epoch_deadline_ms=now_ms + interval_ms)
        replica.set_role(role)
    return min(role.check_quorum_deadline_ms, role.begin_epoch_deadline_ms)


def _resigned(replica: Replica, role: Resigned, now_ms: int) -> int:
    if replica.is_only_voter:
        if replica.is_stopping:
            return NEVER_MS
        replica.become_prospective(now_ms)
        return now_ms
    from ottla.raft.requests import end_quorum_epoch  # late: a quorum of one tells nobody

    open_voters = [key for key in role.unacknowledged if not key.matches(replica.local)]
    ready_ms = _send_each(replica, open_voters, lambda _: end_quorum_epoch.build(replica, role), now_ms)
    if replica.is_stopping:
        return ready_ms
    if now_ms >= role.election_deadline_ms:
        # Not prospective: this replica led the epoch, so it cannot follow anyone in it.
        replica.become_unattached(role.epoch + 1, now_ms)
        return now_ms
    return min(role.election_deadline_ms, ready_ms)


def _follow(replica: Replica, role: Follower, now_ms: int) -> int:
    address = role.endpoints.get(replica.settings.listener)
    leader = None if address is None else Destination(role.leader_id, *address)
    if now_ms >= role.fetch_deadline_ms:
        if replica.may_stand:
            replica.become_prospective(now_ms)
            return now_ms
        if role.has_fetched:  # it supports candidates from now on: a newer voter set may have it as a voter
            replica.set_role(role._replace(has_fetched=False))
        return _find_leader(replica, now_ms, address)
    deadline_ms = role.fetch_deadline_ms
    if replica.connections.has_any:
        return deadline_ms  # one Fetch at a time: two answers could both append
    if leader is None:
        return min(deadline_ms, _find_leader(replica, now_ms))
    if replica.connections.is_backing_off(leader.id, now_ms):
        return min(deadline_ms, replica.connections.ready_at_ms(leader.id), _find_leader(replica, now_ms))
    if replica.is_log_changing or replica.synced_offset < replica.log.end_offset:
        return deadline_ms  # a Fetch acknowledges the log: it waits for the sync
    update = None
    if now_ms >= role.update_deadline_ms:
        replica.set_role(role._replace(update_deadline_ms=now_ms + replica.settings.fetch_timeout_ms))
        update = _update_of_voter(replica, role)
    if update is not None:
        replica.send(leader, update)
    elif role.snapshot is not None:
        from ottla.raft.requests import fetch_snapshot

        replica.send(leader, fetch_snapshot.build(replica, role.snapshot))
    else:
        from ottla.raft.requests import fetch

        replica.send(leader, fetch.build(replica))
    return deadline_ms


def _update_of_voter(replica: Replica, role: Follower) -> Message | None:
    """What this replica tells the leader about itself: where a voter is, or that an observer wants to be a voter."""
    from ottla.raft.requests import add_raft_voter, remove_raft_voter, update_raft_voter

    if replica.is_voter:
        return update_raft_voter.build(replica) if update_raft_voter.is_due(replica, role) else None
    settings = replica.settings
    may_join = settings.can_be_voter and settings.auto_join and settings.listener in settings.endpoints
    if not may_join or replica.history.kraft_version < 1:
        return None
    old = replica.voters.get(replica.local.id)
    # Its directory was emptied or replaced. The old key could never fetch again, and would count in every majority.
    return add_raft_voter.build(replica) if old is None else remove_raft_voter.build(replica, old.key)


def _find_leader(replica: Replica, now_ms: int, known: tuple[str, int] | None = None) -> int:
    """Fetch from any server that may know the leader: its answer names it. One at a time, in turns.

    The `known` leader gets its turn, too: it may lead on after a silence, and be neither a bootstrap server nor in the voter
    set that this replica has. The others would name it again and again, and that is nothing new.
    """
    from ottla.raft.requests import fetch

    servers = _servers(replica)
    if known is not None and known not in servers:
        servers = (*servers, known)
    if replica.connections.has_any or replica.is_log_changing or replica.synced_offset < replica.log.end_offset:
        return NEVER_MS
    server = replica.connections.next_bootstrap(servers, now_ms)
    if server is None:
        return replica.connections.bootstrap_ready_at_ms(servers)
    replica.send(server, fetch.build(replica))
    return NEVER_MS


def _servers(replica: Replica) -> tuple[tuple[str, int], ...]:
    """The bootstrap servers, then the other voters of the newest voter set.

    Kafka asks the bootstrap servers alone. If they name one controller, and that one is removed or lost, its brokers find no
    leader again, although their metadata log says where the voters are.
    """
    listener = replica.settings.listener
    others = (voter.endpoints.get(listener) for voter in replica.voters if voter.key.id != replica.local.id)
    servers = dict.fromkeys((*replica.settings.bootstrap_servers, *(each for each in others if each is not None)))
    return tuple(servers)


def _send_each(replica: Replica, voters: list[ReplicaKey], build: Callable[[ReplicaKey], Message], now_ms: int) -> int:
    """Send to each voter that is ready; returns when to look at the others again."""
    again_ms = NEVER_MS
    for voter in voters:
        destination = replica.voter_destination(voter.id)
        if destination is None:
            continue
        if replica.connections.is_ready(voter.id, now_ms):
            replica.send(destination, build(voter))
        else:
            again_ms = min(again_ms, replica.connections.ready_at_ms(voter.id))
    return again_ms
