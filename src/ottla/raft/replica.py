"""The state machine of one replica of the metadata log. Pure: no await, clock, randomness, socket or file.

Every event is a method. It changes the state, notes effects (`effects.py`), and returns them for the host to carry out, in
order, before the next event. `deadline_ms` says when `tick` has to be called next. The log is read through `LogView` and
changed by effects only.

Order that nothing acknowledged is lost by: an election is durable before a vote is answered or a request sent (`Persist` is
the first effect of its step). A follower fetches only when its whole log is synced, since its Fetch acknowledges it. The leader
counts its own log up to `synced_offset` alone.

A step may pass through several roles. Only the last election of a step is persisted, because no other replica has seen the
earlier ones: a single voter votes for itself, wins and leads in one step, with one write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ottla.errors import BrokenInvariant
from ottla.raft import actions
from ottla.raft.connections import NEVER_MS, Connections
from ottla.raft.effects import (
    Answer,
    AppendControls,
    AppendFetched,
    Committed,
    Destination,
    Effect,
    LeaderChanged,
    Persist,
    Send,
    StoreSnapshot,
    Sync,
    Truncate,
)
from ottla.raft.election import NO_LEADER, ElectionState
from ottla.raft.epochs import HeardEpochs
from ottla.raft.log_view import LogView
from ottla.raft.requests import API_VERSIONS, requests_module
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.prospective import Prospective
from ottla.raft.roles.resigned import Resigned
from ottla.raft.roles.unattached import Unattached
from ottla.raft.settings import RaftSettings
from ottla.raft.transitions import Role, transition
from ottla.raft.voter_history import VoterHistory, first_records
from ottla.raft.voters import Endpoints, ReplicaKey, Voter, VoterSet
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.raft.requests.voter_changes import VoterChange

_STEPS_MAX = 10
"""More role changes than this in one step are a bug."""


class Inbound(NamedTuple):
    """A request that came in. `token` identifies it to the host; `listener` is the listener it came through."""

    token: object
    message: Any
    version: int
    listener: str


class Replica:
    """The state and its events. `start` comes first."""

    def __init__(
        self,
        local: ReplicaKey,
        settings: RaftSettings,
        history: VoterHistory,
        log: LogView,
        random_below: Callable[[int], int],
        election: ElectionState | None = None,
    ) -> None:
        self.local = local
        self.settings = settings
        self.history = history
        self.log = log
        self.effects: list[Effect] = []
        self.connections = Connections(settings.retry_backoff_ms)
        self.role: Role = first_role(local, election, log.last_epoch)
        self.high_watermark: int | None = None
        """The offset below which all records are known to be committed; it never goes back."""
        self.leader_high_watermark = -1
        """The last one that the leader told this follower; its log may end before."""
        self.told_high_watermark = -1
        """The highest one that any leader has told since the start: this replica's log may not have all below it yet."""
        self.synced_offset = 0
        """The offset below which this replica's log is durable."""
        self.voter_change: VoterChange | None = None
        """The change of the voters that this leader has under way."""
        self.acks_at_append = False
        """Whether that change is answered when it is appended, and not when it is committed."""
        self.lost_leader_epoch = -1
        """The epoch whose leader's connection was lost since the last answer of that leader."""
        self.may_ask_early = True
        """Whether this replica has heard no leader since its start, nor asked for pre-votes: it may ask before a timeout."""
        self.is_stopping = False
        self.is_log_changing = False
        """Whether an effect of this step changes the log: `LogView` does not show it before `log_changed`."""
        self._is_syncing = False
        self._random_below = random_below
        self._persisted = election if election is not None else ElectionState()
        self._told_leader = (NO_LEADER, -1)
        self.heard_epochs = HeardEpochs()
        self._parked: dict[object, tuple[Inbound, int]] = {}
        self._deadline_ms = NEVER_MS

    # -- state

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        return self.role.election.leader_id

    @property
    def has_leader(self) -> bool:
        """Whether the leader of the epoch is known, reachable or not."""
        return self.leader_id != NO_LEADER

    @property
    def leader_endpoints(self) -> Endpoints:
        """Where the leader is, as far as this replica follows one."""
        role = self.role
        if isinstance(role, Leader | Resigned):
            return self.settings.endpoints
        if isinstance(role, Follower):
            return role.endpoints
        return (role.leader_endpoints or {}) if isinstance(role, Prospective) else {}

    @property
    def voters(self) -> VoterSet:
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        return self.settings.can_be_voter and self.history.voters.is_voter(self.local)

    @property
    def may_stand(self) -> bool:
        """Whether this replica stands for election: a voter, or one that was removed by a record that may not be committed.

        If it alone has that record, no other replica has a log long enough to win.
        """
        if self.is_voter or not self.settings.can_be_voter:
            return self.is_voter
        offset, known = self.history.voters_offset, self.high_watermark
        return (known is None or offset >= known) and self.history.voters_before(offset).is_voter(self.local)

    @property
    def _is_removed(self) -> bool:
        """Whether the newest voter set is committed."""
        known = self.high_watermark
        return known is not None and known > self.history.voters_offset

    @property
    def is_only_voter(self) -> bool:
        return self.settings.can_be_voter and self.history.voters.is_only_voter(self.local)

    def has_caught_up(self, end_offset: int) -> bool:
        """Whether everything that is known to be committed, here or at the leader, lies below `end_offset`."""
        known, told = self.high_watermark, self.told_high_watermark
        if known is None or (told < 0 and not isinstance(self.role, Leader)):
            return False  # the end of a fetched snapshot alone: what is committed after it is not known
        return end_offset >= max(known, told)

    @property
    def deadline_ms(self) -> int:
        """When `tick` is due."""
        change_ms = NEVER_MS if self.voter_change is None else self.voter_change.deadline_ms
        return min(
            self._deadline_ms, change_ms, min((deadline_ms for _, deadline_ms in self._parked.values()), default=NEVER_MS)
        )

    def endpoints_of_voter(self, voter_id: int) -> Endpoints:
        voter = self.history.voters.get(voter_id)
        return {} if voter is None else voter.endpoints

    # -- events

    def start(self, now_ms: int) -> list[Effect]:
        """Begin to take part. A single voter leads at once, in the same step; others that know no leader ask for pre-votes."""
        deadline_ms = self._election_deadline_ms(now_ms)
        self.role = self.role._replace(election_deadline_ms=deadline_ms)  # type: ignore[call-arg]
        if isinstance(self.role, Unattached) and not self.is_only_voter:
            endpoints = self.endpoints_of_voter(self.leader_id)
            if endpoints:
                self.become_follower(self.epoch, self.leader_id, endpoints, now_ms)
            else:
                self.ask_early(now_ms)
        if self.log.end_offset > 0 and not self.is_only_voter:
            self.sync()  # a killed process may have left records in the page cache
        return self._finish(now_ms)

    def tick(self, now_ms: int) -> list[Effect]:
        """`deadline_ms` has come."""
        return self._finish(now_ms)

    def asked(self, inbound: Inbound, now_ms: int) -> list[Effect]:
        """A request has come in: it is answered by an effect, now or later."""
        before = self.epoch
        response = requests_module(inbound.message.KEY).handle(self, inbound, now_ms)
        self.heard_epochs.raised(self.epoch - before)
        if response is not None:
            self.effects.append(Answer(inbound.token, response))
        return self._finish(now_ms)

    def abandoned(self, token: object) -> None:
        """The sender of a parked request has gone."""
        self._parked.pop(token, None)

    def received(self, node_id: int, correlation: int, response: Message, now_ms: int) -> list[Effect]:
        """A request that was sent has been answered."""
        sent = self.connections.under_way(node_id, correlation)
        if sent is not None:
            succeeded = requests_module(sent.message.KEY).answered(self, sent, response, now_ms)
            self.connections.ended(node_id, correlation, succeeded, now_ms)
        return self._finish(now_ms)

    def failed(
        self, node_id: int, correlation: int, now_ms: int, is_refused: bool = False, is_lost: bool = False
    ) -> list[Effect]:
        """A request will not be answered. `is_refused`: no process listens at the node's address; `is_lost`: the connection
        has ended. Neither: the node was silent.
        """
        sent = self.connections.under_way(node_id, correlation)
        if sent is not None:
            role = self.role
            is_of_leader = isinstance(role, Follower) and node_id == role.leader_id
            has_fetched = isinstance(role, Follower) and role.has_fetched
            # A lost connection may be broken alone: ask again at once, once. A new one shows whether the leader is there.
            is_first = is_of_leader and has_fetched and is_lost and self.lost_leader_epoch != self.epoch
            if is_first:
                self.lost_leader_epoch = self.epoch
            self.connections.ended(node_id, correlation, is_first, now_ms)
            if is_of_leader and is_refused:
                self.ask_early(now_ms, has_fetched)
            if sent.message.KEY == API_VERSIONS:
                from ottla.raft.requests import api_versions

                api_versions.failed(self, sent)
        return self._finish(now_ms)

    def unspoken(self, node_id: int, correlation: int, now_ms: int) -> list[Effect]:
        """A node knows no version of the API that can carry the request that was sent to it."""
        sent = self.connections.under_way(node_id, correlation)
        if sent is not None:
            self.connections.ended(node_id, correlation, False, now_ms)
            from ottla.raft.requests import vote

            vote.unspoken(self, sent, now_ms)
        return self._finish(now_ms)

    def log_changed(self, now_ms: int) -> list[Effect]:
        """The host has carried out a step that changed the log, or has appended records for the controller."""
        self.is_log_changing = False
        if self.log.end_offset > self.synced_offset:
            self.sync()
        if isinstance(self.role, Leader):
            self.set_role(self.role.recounted(self.voters))  # the voters may have changed
        return self._finish(now_ms)

    def synced(self, end_offset: int, now_ms: int) -> list[Effect]:
        """The log is durable below `end_offset`."""
        self._is_syncing = False
        self.synced_offset = max(self.synced_offset, min(end_offset, self.log.end_offset))
        if self.log.end_offset > self.synced_offset:
            self.sync()
        if isinstance(self.role, Leader):
            self.set_role(self.role.synced(self.synced_offset, self.voters))
        return self._finish(now_ms)

    def snapshot_loaded(self) -> None:
        """The host has put a fetched snapshot in place of the log: both are durable. `log_changed` follows."""
        self.synced_offset = self.log.end_offset
        self.leader_high_watermark = max(self.leader_high_watermark, self.log.end_offset)

    def stop(self, now_ms: int) -> list[Effect]:
        """The node stops: a leader resigns and tells the other voters. Nothing is led or voted for from now on."""
        self.is_stopping = True
        if isinstance(self.role, Leader):
            self.become_resigned(now_ms)
        return self._finish(now_ms)

    # -- what roles and requests use

    def set_role(self, role: Role) -> None:
        self.role = transition(self.role, role)

    def sync(self) -> None:
        """Sync the log, unless a sync is running: its end starts the next one if there is more."""
        if not self._is_syncing:
            self._is_syncing = True
            self.effects.append(Sync())

    def change_log(self, effect: AppendControls | AppendFetched | Truncate | StoreSnapshot) -> None:
        """Note an effect after which the host calls `log_changed`."""
        self.is_log_changing = True
        self.effects.append(effect)

    def send(self, destination: Destination, message: Message) -> None:
        self.effects.append(Send(destination, message, self.connections.sent(destination, message)))

    def park(self, inbound: Inbound, deadline_ms: int) -> None:
        self._parked[inbound.token] = (inbound, deadline_ms)

    def voter_destination(self, voter_id: int) -> Destination | None:
        address = self.endpoints_of_voter(voter_id).get(self.settings.listener)
        return None if address is None else Destination(voter_id, *address)

    def follower_fetched(self, replica: ReplicaKey, offset: int, now_ms: int) -> None:
        """A replica has fetched at `offset` from this leader."""
        assert isinstance(self.role, Leader)
        self.set_role(self.role.fetched(replica, offset, self.log.end_offset, now_ms, self.voters))
        self.heard_from(replica, now_ms)

    def heard_from(self, replica: ReplicaKey, now_ms: int) -> None:
        assert isinstance(self.role, Leader)
        self.set_role(self.role.heard_from(replica, self.voters, now_ms, self.settings.check_quorum_timeout_ms))

    def broken(self, problem: str) -> NoReturn:
        raise BrokenInvariant(problem)

    def back_off(self, node_id: int, now_ms: int) -> None:
        """Wait before the next request to a node that sent something damaged."""
        self.connections.ended(node_id, -1, False, now_ms)

    # -- changing roles

    def become_unattached(self, epoch: int, now_ms: int) -> None:
        """Follow no leader, in a higher epoch or, after a lost pre-vote, in the same one."""
        old = self.role.election
        is_same = epoch == self.epoch
        remaining_ms = getattr(self.role, "election_deadline_ms", None) or getattr(self.role, "fetch_deadline_ms", None)
        deadline_ms = self._election_deadline_ms(now_ms)
        if remaining_ms is not None and not is_same:
            deadline_ms = min(remaining_ms, deadline_ms) if remaining_ms > now_ms else deadline_ms
        self._change(Unattached(epoch, old.leader_id if is_same else NO_LEADER, old.voted if is_same else None, deadline_ms))

    def become_follower(self, epoch: int, leader_id: int, endpoints: Endpoints, now_ms: int, deadline_ms: int = 0) -> None:
        """`deadline_ms`: when the fetch timeout ends, if it has begun before."""
        voted = self.role.election.voted if epoch == self.epoch else None
        self.leader_high_watermark = -1
        if deadline_ms <= now_ms:
            deadline_ms = now_ms + self.settings.fetch_timeout_ms
        self._change(
            Follower(
                epoch, leader_id, endpoints, voted, deadline_ms, update_deadline_ms=now_ms + self.settings.fetch_timeout_ms
            )
        )

    def become_prospective(self, now_ms: int, is_starting: bool = False) -> None:
        """Ask for pre-votes: after a timeout, or before it (`ask_early`).

        Kafka always waits for the timeout. Asking at once is safe: a voter that still hears from the leader grants no
        pre-vote, and a leader that starts again has resigned.
        """
        role, election = self.role, self.role.election
        self._change(
            Prospective(
                self.epoch,
                (self.local,),
                election.leader_id,
                election.voted,
                election_deadline_ms=self._election_deadline_ms(now_ms),
                leader_endpoints=self.leader_endpoints if isinstance(role, Follower) else None,
                fetch_deadline_ms=role.fetch_deadline_ms if isinstance(role, Follower) else 0,
                is_starting=is_starting,
            )
        )

    def ask_early(self, now_ms: int, has_fetched: bool = False) -> bool:
        """Ask for pre-votes before a timeout, if this replica has fetched from the leader, or heard none since its start."""
        if not (has_fetched or self.may_ask_early) or not self.may_stand or self.is_stopping:
            return False
        self.may_ask_early = False
        self.become_prospective(now_ms, is_starting=not has_fetched)
        return True

    def become_candidate(self, now_ms: int) -> None:
        deadline_ms = self._election_deadline_ms(now_ms)
        self._change(Candidate(self.epoch + 1, self.local, (self.local,), election_deadline_ms=deadline_ms))

    def become_leader(self, now_ms: int) -> None:
        role = self.role
        assert isinstance(role, Candidate)
        controls = first_records(self.local, role.granting, self.history, self.settings.endpoints)
        leader = Leader(
            role.epoch,
            self.local,
            self.log.end_offset,
            role.granting,
            check_quorum_deadline_ms=now_ms + self.settings.check_quorum_timeout_ms,
            described={self.local.id: Voter(self.local, self.settings.endpoints or self.endpoints_of_voter(self.local.id))},
        )
        self._change(leader.synced(self.synced_offset, self.voters))
        self.change_log(AppendControls(controls, role.epoch))

    def become_resigned(self, now_ms: int) -> None:
        role = self.role
        assert isinstance(role, Leader)
        successors = role.successors(self.voters)
        self._change(Resigned(role.epoch, self.local, successors, successors, self._election_deadline_ms(now_ms)))

    def vote_for(self, candidate: ReplicaKey, now_ms: int) -> None:
        """Give the vote of this epoch."""
        role = self.role
        assert isinstance(role, Unattached | Prospective)
        if role.voted is None:
            self.set_role(role._replace(voted=candidate, election_deadline_ms=self._election_deadline_ms(now_ms)))

    def _election_deadline_ms(self, now_ms: int) -> int:
        timeout_ms = self.settings.election_timeout_ms
        return now_ms + timeout_ms + self._random_below(timeout_ms)

    def _change(self, role: Role) -> None:
        self.set_role(role)
        self.connections.reset()

    # -- the end of a step

    def _finish(self, now_ms: int) -> list[Effect]:
        self._act(now_ms)
        self._commit()
        self._answer_parked(now_ms)
        self._commit()
        if self.voter_change is not None:
            from ottla.raft.requests import voter_changes

            voter_changes.settle(self, self.voter_change, now_ms)
            self._act(now_ms)
        if isinstance(self.role, Leader) and not self.is_voter and self._is_removed:
            self.become_resigned(now_ms)  # an earlier leader has removed it, and it has committed that itself
            self._act(now_ms)
        effects, self.effects = self.effects, []
        election = self.role.election
        if election != self._persisted:
            self._persisted = election
            effects.insert(0, Persist(election))
        # A resigned leader leads no more, although no other can lead its epoch: its controller must stop at once.
        leader_id = NO_LEADER if isinstance(self.role, Resigned) else self.leader_id
        if self._told_leader != (told := (leader_id, self.epoch)):
            self._told_leader = told
            effects.append(LeaderChanged(*told))
        return effects

    def _act(self, now_ms: int) -> None:
        for _ in range(_STEPS_MAX):
            before = self.role
            self._deadline_ms = actions.act(self, now_ms)
            if self.role is before:
                return
        raise BrokenInvariant(f"the quorum does not settle: {self.role}")

    def _commit(self) -> None:
        role, known = self.role, self.high_watermark
        if self.is_log_changing:
            return
        if isinstance(role, Leader):
            new = role.high_watermark
        elif isinstance(role, Follower):
            new = min(self.leader_high_watermark, self.log.end_offset)
        else:
            return
        if new is not None and new >= 0 and (known is None or new > known):
            self.high_watermark = new
            self.effects.append(Committed(new))

    def _answer_parked(self, now_ms: int) -> None:
        if not self._parked:
            return
        from ottla.raft.requests import fetch

        for inbound, deadline_ms in list(self._parked.values()):
            effect = fetch.complete(self, inbound, now_ms) if isinstance(self.role, Leader) else None
            if effect is None and not isinstance(self.role, Leader):
                effect = Answer(inbound.token, fetch.not_leader(self, inbound))
            elif effect is None and deadline_ms <= now_ms:
                effect = Answer(inbound.token, fetch.answer(self, inbound))
            if effect is not None:
                del self._parked[inbound.token]
                self.effects.append(effect)


def first_role(local: ReplicaKey, election: ElectionState | None, last_epoch: int) -> Unattached | Resigned | Candidate:
    """The role of a replica that has just started: from its quorum-state file, or from its log if that has a newer epoch."""
    found = election if election is not None else ElectionState()
    if found.epoch < last_epoch:
        return Unattached(last_epoch)
    if found.leader_id == local.id:
        return Resigned(found.epoch, local)
    if not found.has_leader and found.voted is not None and found.voted.matches(local):
        return Candidate(found.epoch, local, (local,))  # with a leader it has lost: it must not win this epoch as only voter
    return Unattached(found.epoch, found.leader_id, found.voted)
