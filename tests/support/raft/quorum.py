"""N replicas in virtual time: messages are delayed, dropped and reordered, nodes crash, pause and are cut off."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.support.raft.checkers import Checkers, Violation
from tests.support.raft.memory_log import Entry, MemoryLog

from ottla.errors import BrokenInvariant
from ottla.ids import Uuid
from ottla.raft import effects as fx
from ottla.raft.election import ElectionState
from ottla.raft.replica import Inbound, Replica
from ottla.raft.roles.leader import Leader
from ottla.raft.settings import RaftSettings
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voter_history import VoterHistory
from ottla.raft.voters import ReplicaKey, static_voters
from ottla.records.control import ControlRecord
from ottla.wire.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey

PIECE = 3
SNAPSHOT_PIECE = 25
API_VERSIONS = 18
NEWEST = {1: 18, 52: 2, 53: 1, 54: 1, 59: 1, 80: 1, 81: 0, 82: 0}


@dataclass
class Faults:
    """What may happen. `broken` names a deliberate mistake of the host."""

    drop: float = 0.05
    slow: float = 0.1
    crash_every_ms: int = 1500
    cut_every_ms: int = 1200
    pause_every_ms: int = 2500
    snapshots: bool = True
    lies_about_sync: bool = False
    piece: int = PIECE
    """The most records in an answer to a Fetch."""
    appends_every_ms: int = 30
    nodes: int = 3
    """The first voters."""
    observers: int = 0
    changes_every_ms: int = 0
    """How often an operator adds or removes a voter (`changes.py`)."""
    wipes_every_ms: int = 0
    """How often a controller's disk is replaced by an empty one."""
    upgrades: bool = False
    """Whether the quorum begins with kraft.version 0 and is upgraded."""
    auto_join: bool = False
    refuses: float = 0.5
    """How often a crash ends the process alone: its host closes connections and refuses new ones. Otherwise it is silent."""


@dataclass
class SimNode:
    """One machine: what is on its disk, and the replica while it runs."""

    key: ReplicaKey
    log: MemoryLog = field(default_factory=MemoryLog)
    election: ElectionState | None = None
    replica: Replica | None = None
    life: int = 0
    busy: bool = False
    queue: list[Callable[[], None]] = field(default_factory=list)
    committed: int = 0
    is_empty: bool = False
    """Whether its disk was replaced: formatted without voters."""
    paused_until: int = 0
    parts: dict[SnapshotId, list[Entry]] = field(default_factory=dict)
    timer: int = -1
    is_refusing: bool = False
    """Whether its host is up while the process is not."""
    callers: list[Callable[[], None]] = field(default_factory=list)
    """What to call when the connections to this node are closed, for each request that it has not answered."""


class SimQuorum:
    """A run. `run(ms)` advances the virtual clock; a `Violation` says what went wrong."""

    are_all_controllers = False
    """Whether observers are controllers too, and may become voters."""

    def __init__(self, seed: int, faults: Faults | None = None) -> None:
        self.random = Random(seed)
        self.faults = faults or Faults()
        self.now = 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.sequence = 0
        self.cuts: set[tuple[int, int]] = set()
        self.is_healed = False
        self.is_quiet = False
        self.is_stalled = False
        """Whether no replica could be elected after healing."""
        self.checkers = Checkers()
        self.payload = 0
        ids = range(1, self.faults.nodes + 1)
        self.static = static_voters([(each, f"h{each}", each) for each in ids], "C")
        all_ids = range(1, self.faults.nodes + self.faults.observers + 1)
        self.controller_ids = list(all_ids) if self.are_all_controllers else list(ids)
        self.nodes = {each: SimNode(ReplicaKey(each, Uuid(bytes([each]) * 16))) for each in all_ids}
        for node in self.nodes.values():
            self.start(node)
        for every_ms, act in (
            (self.faults.crash_every_ms, self._crash_one),
            (self.faults.cut_every_ms, self._cut_or_heal),
            (self.faults.pause_every_ms, self._pause_one),
            (self.faults.appends_every_ms, self._append_some),
            (400, self._snapshot_one),
        ):
            if every_ms:
                self._repeat(every_ms, act)

    # -- virtual time

    def at(self, delay_ms: int, act: Callable[[], None]) -> None:
        self.sequence += 1
        heapq.heappush(self.events, (self.now + delay_ms, self.sequence, act))

    def _repeat(self, every_ms: int, act: Callable[[], None]) -> None:
        def again() -> None:
            act()
            self.at(self.random.randint(1, 2 * every_ms), again)

        self.at(self.random.randint(1, 2 * every_ms), again)

    def run(self, for_ms: int, until: Callable[[], bool] | None = None) -> bool:
        """Advance the clock; True as soon as `until` holds."""
        end = self.now + for_ms
        while self.events and self.events[0][0] <= end:
            self.now, _, act = heapq.heappop(self.events)
            act()
            if until is not None and until():
                return True
        self.now = end
        return until is None or until()

    # -- nodes

    def settings(self, node: SimNode) -> RaftSettings:
        return RaftSettings(
            "cluster",
            "C",
            {"C": (f"h{node.key.id}", node.key.id)},
            tuple((f"h{each}", each) for each in self.controller_ids if each != node.key.id),
            can_be_voter=node.key.id in self.controller_ids,
            election_timeout_ms=100,
            election_backoff_max_ms=100,
            fetch_timeout_ms=200,
            request_timeout_ms=150,
            retry_backoff_ms=10,
            fetch_max_wait_ms=50,
            auto_join=self.faults.auto_join,
        )

    def first_history(self, node: SimNode) -> VoterHistory:
        """The voters of a node whose log is empty."""
        return VoterHistory(self.static)

    def history(self, node: SimNode) -> VoterHistory:
        """The voters as a starting node finds them: in its newest snapshot and in the log after it."""
        log = node.log
        history = VoterHistory(self.static) if log.snapshots else self.first_history(node)
        latest = max(log.snapshots, default=SnapshotId(log.start_offset, 0))
        note_controls(history, log.snapshots.get(latest, []), latest.offset - 1, is_snapshot=True)
        note_controls(history, log.read(max(latest.offset, log.start_offset), 1 << 30), max(latest.offset, log.start_offset))
        return history

    def start(self, node: SimNode) -> None:
        history = self.history(node)
        node.life += 1
        node.paused_until, node.timer = self.now, -1  # the process before it was paused, and its timer ended with it
        node.busy, node.queue, node.committed, node.parts = False, [], node.log.start_offset, {}
        node.replica = Replica(node.key, self.settings(node), history, node.log, self.random.randrange, node.election)
        self.step(node, lambda replica: replica.start(self.now))

    def crash(self, node: SimNode) -> None:
        node.replica = None
        node.life += 1
        node.log.crash(self.random)
        node.is_refusing = self.random.random() < self.faults.refuses
        callers, node.callers = node.callers, []
        if node.is_refusing:
            for connection_closed in callers:
                self.at(self._delay(), connection_closed)

    def step(self, node: SimNode, event: Callable[[Replica], list[fx.Effect]]) -> None:
        """Give a node an event, now or once it is neither busy nor paused."""
        replica, life = node.replica, node.life
        if replica is None:
            return
        if node.paused_until > self.now:
            self.at(node.paused_until - self.now, lambda: (life == node.life and self.step(node, event)) or None)
            return
        if node.busy:
            node.queue.append(lambda: self.step(node, event))
            return
        try:
            effects = event(replica)
        except BrokenInvariant as broken:
            raise Violation(f"node {node.key.id}: {broken}") from broken
        self._carry_out(node, replica, effects)

    def _carry_out(self, node: SimNode, replica: Replica, effects: list[fx.Effect]) -> None:
        is_changed = False
        for at, effect in enumerate(effects):
            if isinstance(effect, fx.Persist):
                self._persist(node, replica, effect.election, effects[at + 1 :])
                return
            is_changed |= isinstance(effect, fx.AppendControls | fx.AppendFetched | fx.Truncate | fx.StoreSnapshot)
            self._do(node, replica, effect)
        if is_changed:
            self.step(node, lambda replica: replica.log_changed(self.now))
        self._set_timer(node, replica)

    def _persist(self, node: SimNode, replica: Replica, election: ElectionState, rest: list[fx.Effect]) -> None:
        node.busy, life = True, node.life
        if self.random.random() < 0.5:
            node.election = election  # it may be on the disk before the call returns

        def done() -> None:
            if node.life != life:
                return
            node.election, node.busy = election, False
            self._carry_out(node, replica, rest)
            queue, node.queue = node.queue, []
            for each in queue:
                each()

        self.at(self.random.randint(0, 8), done)

    def _set_timer(self, node: SimNode, replica: Replica) -> None:
        deadline = replica.deadline_ms
        if deadline > self.now + 10_000_000 or (self.now < node.timer <= deadline):
            return
        node.timer, life = max(deadline, self.now + 1), node.life
        self.at(node.timer - self.now, lambda: (life == node.life and self._tick(node)) or None)

    def _tick(self, node: SimNode) -> None:
        node.timer = -1
        self.step(node, lambda replica: replica.tick(self.now))

    def _do(self, node: SimNode, replica: Replica, effect: fx.Effect) -> None:
        log = node.log
        if isinstance(effect, fx.AppendControls):
            self.checkers.leads(node.key.id, effect.epoch, log)
            self.append_entries(node, [Entry(effect.epoch, each) for each in effect.controls])
        elif isinstance(effect, fx.AppendFetched):
            self.append_entries(node, effect.data)
        elif isinstance(effect, fx.Truncate):
            log.truncate(effect.offset)
        elif isinstance(effect, fx.Sync):
            self._sync(node)
        elif isinstance(effect, fx.Committed):
            if effect.offset < node.committed:
                raise Violation(f"the high watermark of {node.key.id} goes back from {node.committed} to {effect.offset}")
            is_leader = isinstance(replica.role, Leader)
            self.checkers.commits(node.key.id, effect.offset, log, replica.epoch, is_leader)
            node.committed = effect.offset
        elif isinstance(effect, fx.Send):
            self._send(node, effect)
        elif isinstance(effect, fx.StoreSnapshot):
            part = [] if effect.position == 0 else node.parts[effect.snapshot_id]
            node.parts[effect.snapshot_id] = part = [*part, *effect.data]
            if effect.is_last:
                log.snapshots[effect.snapshot_id] = part
                log.start_at_snapshot(effect.snapshot_id)
                replica.history.clear()
                note_controls(replica.history, part, effect.snapshot_id.offset - 1, is_snapshot=True)
                node.committed = effect.snapshot_id.offset
                replica.snapshot_loaded()
        elif not isinstance(effect, fx.LeaderChanged | fx.Disbelieved):
            self._answer(effect, log)

    def append_entries(self, node: SimNode, entries: list[Entry]) -> None:
        assert node.replica is not None
        note_controls(node.replica.history, entries, node.log.end_offset)
        node.log.entries.extend(entries)

    def _answer(self, effect: Any, log: MemoryLog) -> None:
        if isinstance(effect, fx.AnswerWithRecords):
            effect.message.responses[0].partitions[0].records = log.read(
                effect.offset, 1 + self.random.randrange(self.faults.piece)
            )  # type: ignore[attr-defined]
        elif isinstance(effect, fx.AnswerWithSnapshot):
            content = log.snapshots[effect.snapshot_id]
            effect.message.topics[0].partitions[0].unaligned_records = content[
                effect.position : effect.position + SNAPSHOT_PIECE
            ]  # type: ignore[attr-defined]
        effect.token(effect.message)

    def _sync(self, node: SimNode) -> None:
        life, generation, target = node.life, node.log.generation, node.log.end_offset
        if self.faults.lies_about_sync:
            self.at(0, lambda: (life == node.life and self.step(node, lambda each: each.synced(target, self.now))) or None)
            return

        def done() -> None:
            if node.life != life:
                return
            if node.log.generation != generation:
                self._sync(node)  # cut meanwhile: what was synced is not what the log holds
                return
            node.log.sync_done(target)
            self.step(node, lambda replica: replica.synced(target, self.now))

        self.at(self.random.randint(0, 10), done)

    # -- the network

    def _send(self, node: SimNode, send: fx.Send) -> None:
        target = self.nodes[send.destination.port]
        life, is_over = node.life, [False]

        def ended(event: Callable[[Replica], list[fx.Effect]]) -> None:
            if not is_over[0] and node.life == life:
                is_over[0] = True
                self.step(node, event)

        def answered(response: Any) -> None:
            if not self._is_lost(target.key.id, node.key.id):
                event = lambda each: each.received(send.destination.id, send.correlation, response, self.now)  # noqa: E731
                self.at(self._delay(), lambda: ended(event))

        def failed(is_refused: bool = False, is_lost: bool = False) -> None:
            ended(lambda each: each.failed(send.destination.id, send.correlation, self.now, is_refused, is_lost))

        def connection_closed() -> None:
            if (target.key.id, node.key.id) not in self.cuts:
                failed(is_lost=True)

        def arrives() -> None:
            if target.replica is None:
                if target.is_refusing and not self._is_lost(target.key.id, node.key.id):
                    self.at(self._delay(), lambda: failed(is_refused=True))
                return
            target.callers = [*target.callers[-50:], connection_closed]
            self.step(target, lambda each: self._asked(target, each, send.message, answered))

        if not self._is_lost(node.key.id, target.key.id):
            self.at(self._delay(), arrives)
        self.at(150, failed)

    def _asked(self, node: SimNode, replica: Replica, message: Any, answered: Callable[[Any], None]) -> list[fx.Effect]:
        def answer(response: Any) -> None:
            if message.KEY == 52 and response.topics and response.topics[0].partitions[0].vote_granted:
                asked = message.topics[0].partitions[0]
                if not asked.pre_vote:
                    self.checkers.voted(node.key, asked.replica_epoch, asked.replica_id)
            answered(response)

        if message.KEY == API_VERSIONS:
            answered(ApiVersionsResponse(supported_features=[SupportedFeatureKey(name="kraft.version", max_version=1)]))
            return []
        return replica.asked(Inbound(answer, message, NEWEST[message.KEY], "C"), self.now)

    def _is_lost(self, source: int, target: int) -> bool:
        return (source, target) in self.cuts or (not self.is_healed and self.random.random() < self.faults.drop)

    def _delay(self) -> int:
        return self.random.randint(20, 120) if self.random.random() < self.faults.slow else self.random.randint(0, 5)

    # -- faults and load

    def _crash_one(self) -> None:
        if self.is_healed:
            return
        node = self.nodes[self.random.choice(list(self.nodes))]
        if node.replica is None:
            self.start(node)
        else:
            self.crash(node)

    def _pause_one(self) -> None:
        if not self.is_healed:
            self.nodes[self.random.choice(list(self.nodes))].paused_until = self.now + self.random.randint(50, 600)

    def _cut_or_heal(self) -> None:
        if self.is_healed or (self.cuts and self.random.random() < 0.6):
            self.cuts.clear()
            return
        if len(self.nodes) > 3 and self.random.random() < 0.5:
            group = set(self.random.sample(list(self.nodes), 2))  # a pair on its own: it commits nothing
            self.cuts |= {(a, b) for a in self.nodes for b in self.nodes if (a in group) != (b in group)}
            return
        lonely = self.random.choice(list(self.nodes))
        for other in self.nodes:
            if other != lonely:
                way = self.random.choice(("both", "in", "out"))
                if way != "in":
                    self.cuts.add((lonely, other))
                if way != "out":
                    self.cuts.add((other, lonely))

    def _append_some(self) -> None:
        if self.is_quiet:
            return
        for node in self.nodes.values():
            if node.replica is not None and isinstance(node.replica.role, Leader) and not node.busy:
                self.payload += 1
                self.append(node, self.payload)

    def append(self, node: SimNode, payload: int) -> None:
        """What a controller on the leader does."""
        if node.paused_until > self.now or node.replica is None:
            return
        node.log.entries.append(Entry(node.replica.epoch, payload))
        self.step(node, lambda replica: replica.log_changed(self.now))

    def _snapshot_one(self) -> None:
        node = self.nodes[self.random.choice(list(self.nodes))]
        offset = node.committed
        if not self.faults.snapshots or node.replica is None or offset <= node.log.start_offset + 2:
            return
        snapshot_id = SnapshotId(offset, node.log.entry(offset - 1).epoch)
        node.log.snapshots[snapshot_id] = self.checkers.committed[:offset]
        if self.random.random() < 0.7:
            node.log.trim(snapshot_id)

    # -- the end

    def heal(self) -> None:
        """No more faults; every node runs."""
        self.is_healed = True
        self.cuts.clear()
        for node in self.nodes.values():
            node.paused_until = min(node.paused_until, self.now + 600)
            if node.replica is None:
                self.start(node)

    def check_live(self, within_ms: int = 6000) -> None:
        """After healing, every node commits something that is appended now, unless no voter can win (`can_elect`)."""
        mark = len(self.checkers.committed) + 3
        if not self.run(within_ms, lambda: all(node.committed >= mark for node in self.nodes.values())):
            if not self.can_elect():
                self.is_stalled = True
                return
            roles = {each: str(node.replica and node.replica.role)[:90] for each, node in self.nodes.items()}
            raise Violation(f"not live: committed {[node.committed for node in self.nodes.values()]} of {mark}: {roles}")
        self.is_quiet = True
        self.run(within_ms, lambda: all(node.committed == len(self.checkers.committed) for node in self.nodes.values()))
        self.checkers.in_the_end({each: node.log for each, node in self.nodes.items()})

    def can_elect(self) -> bool:
        """Whether a replica could win an election: a majority of the voters in its own log have no longer log than it has.

        A voter that a lost leader has added, and a leader that lost its disk, can leave no such replica (docs/decisions/0014).
        """
        replicas = [node.replica for node in self.nodes.values() if node.replica is not None]
        return any(
            _MAY_STAND(replica)
            and sum(replica.voters.is_voter(each.local) and _ends_at(each) <= _ends_at(replica) for each in replicas)
            >= replica.voters.majority
            for replica in replicas
        )


_MAY_STAND: Callable[[Replica], bool] = Replica.may_stand.fget  # type: ignore[attr-defined]  # tests break the property


def _ends_at(replica: Replica) -> tuple[int, int]:
    """What decides between two logs in an election."""
    return replica.log.last_epoch, replica.log.end_offset


def note_controls(history: VoterHistory, entries: list[Entry], offset: int, is_snapshot: bool = False) -> None:
    """Note the control records among `entries`: those of a snapshot at its last offset, those of a log at their own."""
    for at, entry in enumerate(entries):
        if isinstance(entry.payload, ControlRecord):
            history.note(offset if is_snapshot else offset + at, entry.payload)


def run_seed(seed: int, faults: Faults | None = None, for_ms: int = 4000, kind: type[SimQuorum] = SimQuorum) -> Any:
    """One run: faults for a while, then healing; raises `Violation`."""
    quorum = kind(seed, faults)
    try:
        quorum.run(for_ms)
        quorum.heal()
        quorum.check_live()
    except Violation as violation:
        raise Violation(f"seed {seed}, at {quorum.now} ms: {violation}") from violation
    return quorum
