"""A simulated quorum whose voters change: an operator adds and removes them, disks are replaced, kraft.version is raised."""

from typing import Any

from tests.support.raft.checkers import Violation
from tests.support.raft.memory_log import Entry, MemoryLog
from tests.support.raft.quorum import Faults, SimNode, SimQuorum

from ottla.ids import Uuid
from ottla.raft import control
from ottla.raft import effects as fx
from ottla.raft.replica import Inbound, Replica
from ottla.raft.roles.leader import Leader
from ottla.raft.voter_history import BEFORE_THE_LOG, VoterHistory, refuse_upgrade, upgrade_records
from ottla.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest


class ChangingQuorum(SimQuorum):
    """All nodes are controllers; the first `faults.nodes` are the first voters."""

    are_all_controllers = True

    def __init__(self, seed: int, faults: Faults | None = None) -> None:
        self.changes = 0
        """The voter changes that were acknowledged."""
        super().__init__(seed, faults)
        for every_ms, act in (
            (self.faults.changes_every_ms, self._change_voters),
            (self.faults.wipes_every_ms, self._wipe_one),
            (200 if self.faults.upgrades else 0, self._upgrade),
        ):
            if every_ms:
                self._repeat(every_ms, act)

    def first_history(self, node: SimNode) -> VoterHistory:
        if self.faults.upgrades:
            return super().first_history(node)
        found = VoterHistory(VoterSet())
        if not node.is_empty and node.key.id <= self.faults.nodes:  # the snapshot that formatting writes
            voters = VoterSet(_first_voter(each) for each in range(1, self.faults.nodes + 1))
            found.note(BEFORE_THE_LOG, control.kraft_version(1))
            found.note(BEFORE_THE_LOG, control.kraft_voters(voters))
        return found

    # -- what an operator does

    def _leader(self) -> tuple[SimNode, Replica] | None:
        """A node that leads, perhaps in an old epoch."""
        leaders = [node for node in self.nodes.values() if node.replica is not None and isinstance(node.replica.role, Leader)]
        if not leaders:
            return None
        node = self.random.choice(leaders)
        assert node.replica is not None
        return (node, node.replica) if not node.busy and node.paused_until <= self.now else None

    def _change_voters(self) -> None:
        found = self._leader()
        if self.is_healed or found is None:
            return
        leader, replica = found
        voters = replica.voters
        live = {node.key for node in self.nodes.values()}
        gone = [voter.key for voter in voters if voter.key not in live]
        others = [node.key for node in self.nodes.values() if voters.get(node.key.id) is None]
        message: Any
        if gone:
            message = self._removal(gone[0])  # an operator who removes another one first loses the majority
        elif others and (len(voters) < 2 or self.random.random() < 0.6):
            message = self._addition(self.random.choice(others))
        elif len(voters) > 1:
            message = self._removal(self.random.choice([voter.key for voter in voters]))
        else:
            return

        def answer(response: Any) -> None:
            self.changes += response.error_code == 0

        version = 1 if isinstance(message, AddRaftVoterRequest) else 0
        self.step(leader, lambda replica: replica.asked(Inbound(answer, message, version, "C"), self.now))

    def _addition(self, key: ReplicaKey) -> AddRaftVoterRequest:
        return AddRaftVoterRequest(
            cluster_id="cluster",
            voter_id=key.id,
            voter_directory_id=key.directory_id,
            listeners=[Listener(name="C", host=f"h{key.id}", port=key.id)],
            ack_when_committed=self.random.random() < 0.5,
        )

    def _removal(self, key: ReplicaKey) -> RemoveRaftVoterRequest:
        return RemoveRaftVoterRequest(cluster_id="cluster", voter_id=key.id, voter_directory_id=key.directory_id)

    def _upgrade(self) -> None:
        found = self._leader()
        if found is None:
            return
        leader, replica = found
        if replica.history.kraft_version == 0 and replica.high_watermark is not None and refuse_upgrade(replica) is None:
            self.append_entries(leader, [Entry(replica.epoch, each) for each in upgrade_records(replica)])
            self.step(leader, lambda replica: replica.log_changed(self.now))

    def _do(self, node: SimNode, replica: Replica, effect: fx.Effect) -> None:
        super()._do(node, replica, effect)
        if isinstance(effect, fx.Truncate) and replica.voters != (found := self.history(node).voters):
            raise Violation(f"node {node.key.id} has cut its log and counts {replica.voters}, its log has {found}")

    # -- disks

    def _wipe_one(self) -> None:
        """Replace a disk, if no other one is missing: two lost disks of three lose what is committed."""
        live = {node.key for node in self.nodes.values()}
        for node in self.nodes.values():
            if node.replica is None or node.replica.history.kraft_version < 1 or len(node.replica.voters) < 3:
                return
            if any(voter.key not in live for voter in node.replica.voters):
                return
        if not self.is_healed:
            self.wipe(self.nodes[self.random.choice(list(self.nodes))])

    def wipe(self, node: SimNode) -> None:
        self.crash(node)
        node.log, node.election, node.is_empty = MemoryLog(), None, True
        node.key = ReplicaKey(node.key.id, Uuid(self.random.randbytes(16)))
        self.start(node)

    # -- the end

    def check_live(self, within_ms: int = 6000) -> None:
        super().check_live(within_ms)
        self.is_quiet = False
        if self.faults.upgrades and not self.run(within_ms, lambda: set(self._levels().values()) == {1}):
            raise Violation(f"kraft.version was not raised: {self._levels()}")
        if self.faults.auto_join:
            keys = {node.key for node in self.nodes.values()}
            if not self.run(within_ms, lambda: all(self._voter_keys(node) == keys for node in self.nodes.values())):
                found = {each: self._voter_keys(node) for each, node in self.nodes.items()}
                raise Violation(f"controllers {keys} have not all joined: {found}")

    def _levels(self) -> dict[int, int | None]:
        return {each: node.replica and node.replica.history.kraft_version for each, node in self.nodes.items()}

    def _voter_keys(self, node: SimNode) -> set[ReplicaKey]:
        return set() if node.replica is None else {voter.key for voter in node.replica.voters}


def _first_voter(node_id: int) -> Voter:
    return Voter(ReplicaKey(node_id, Uuid(bytes([node_id]) * 16)), {"C": (f"h{node_id}", node_id)})
