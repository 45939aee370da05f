"""The operator of a simulated cluster: changes it with the requests of an Admin, each repeated until it is certainly made.

Replaces lost nodes, and changes the voters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from ottla.client.admin.aio import Admin
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import TopicPartition
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState
from ottla.raft.voters import ReplicaKey
from ottla.sim.checkers.checker import Violation
from ottla.sim.clients.client import BACKOFF_S_MAX, CLIENT_SETTINGS, Client, Stage
from ottla.sim.cluster.disks import WAIT_S_MAX, soon
from ottla.sim.cluster.machine import ClusterMachine, Machines
from ottla.sim.machine import CONTROLLER_PORT

CHANGE_S_MAX = 60.0
"""How long a change may be refused: nodes may be down, and an added one must have caught up."""


class Operator(Client):
    """One for all troubles that need an operator."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage, "operator")

    def admin(self) -> Admin:
        """An Admin, to be closed."""
        return Admin(
            self.stage.bootstrap_servers,
            world=self.world(),
            client_id=self.name,
            default_api_timeout_ms=4_000,
            **CLIENT_SETTINGS,
        )

    async def make(self, what: str, call: Callable[[], Awaitable[None]], done_already: ErrorCode) -> None:
        """Repeat a request until its change is made."""
        until_s = self.stage.now_s() + CHANGE_S_MAX
        while True:
            try:
                await call()
                return
            except KafkaError as error:
                self.note("refused", f"{what} {error_name(error.code)}")
                if error.code == done_already:
                    return
                if self.stage.now_s() >= until_s:
                    raise Violation(f"{self.name} {what}: refused for {CHANGE_S_MAX:g} s, at last with {error}") from error
            await self.pause(BACKOFF_S_MAX)


VOTING_S_MAX = 6.0
"""How long it may take until all controllers are voters."""
LISTENER = "CONTROLLER"


class VoterTroubles:
    """Changes of the voters: `voter change`, a controller is removed from the voters and added again, as an operator would do
    it.

    Only with voters in the metadata log. The requests go through any broker (RemoveRaftVoter, AddRaftVoter), and are repeated
    until the change is certainly made. Between them the node is an observer; the others need both of their votes if there are
    three.

    Carries them out on `machines`. `quorum_turn` is held while a controller is not a voter.
    """

    def __init__(self, machines: Sequence[ClusterMachine], operator: Operator, quorum_turn: asyncio.Lock) -> None:
        self._machines, self._operator, self._quorum_turn = machines, operator, quorum_turn

    async def change(self, machine: ClusterMachine, length_s: float) -> None:
        async with self._quorum_turn:
            if not machine.is_controller or not await soon(lambda: self._all_vote(machine), VOTING_S_MAX):
                self._operator.stage.trace.note(machine.name, "spared", "voter change: not all controllers are voters")
                return
            key, admin = machine.quorum.local, self._operator.admin()
            await remove_voter(self._operator, admin, machine, key)
            await asyncio.sleep(length_s)
            await add_voter(self._operator, admin, machine, key)
            await admin.close()

    def _all_vote(self, machine: ClusterMachine) -> bool:
        return not machine.is_lost and all(each.is_up and not each.is_out_of_voters for each in self._machines)


async def remove_voter(operator: Operator, admin: Admin, machine: ClusterMachine, key: ReplicaKey) -> None:
    """Remove the key of a controller, which may be lost, from the voters."""
    await operator.make(
        f"removes {machine.name}",
        lambda: admin.remove_raft_voter(key.id, key.directory_id),
        ErrorCode.VOTER_NOT_FOUND,
    )
    operator.stage.trace.note(machine.name, "voters", "removed")


async def add_voter(operator: Operator, admin: Admin, machine: ClusterMachine, key: ReplicaKey) -> None:
    """Add the key of a controller to the voters."""
    endpoint = (LISTENER, machine.name, CONTROLLER_PORT)
    await operator.make(
        f"adds {machine.name}",
        lambda: admin.add_raft_voter(key.id, key.directory_id, [endpoint]),
        ErrorCode.DUPLICATE_VOTER,
    )
    operator.stage.trace.note(machine.name, "voters", "added")


Committed = Callable[[], MetadataImage]
"""The newest committed metadata."""
Moves = dict[TopicPartition | tuple[str, int], list[int]]
"""Partition → the replicas that it gets."""


class Replacements:
    """`replace`: a node is lost for good, with its machine and its disks, and a node with another id takes its place.

    The operator does what one of Apache Kafka does:

    1. A new machine, with empty formatted disks, is started under a new node id. Its broker registers.
    2. If the node was a controller: its key is removed from the voters (RemoveRaftVoter), and the new controller is added
       (AddRaftVoter), or it adds itself (controller.quorum.auto.join.enable). Only with voters in the metadata log.
    3. Replicas of the lost broker are reassigned to the new one (AlterPartitionReassignments), also those of topics that are
       created meanwhile.
    4. When no partition names the lost broker any more, it is unregistered (UnregisterBroker).

    A node is lost only if it might be wiped (`disks.py`): the others have all that it has. `left_behind` says what is not done
    yet.

    Carries them out on `machines`. `may_lose` says whether the others have all that a node has; `may_end` notes an end.
    """

    def __init__(
        self,
        machines: Machines,
        operator: Operator,
        committed: Committed,
        may_lose: Callable[[ClusterMachine], bool],
        may_end: Callable[..., bool],
        quorum_turn: asyncio.Lock,
    ) -> None:
        self._machines, self._operator, self._committed = machines, operator, committed
        self._may_lose, self._may_end, self._quorum_turn = may_lose, may_end, quorum_turn
        self._stage = operator.stage
        self._random = Random(f"{self._stage.seed}/replacements")

    async def replace(self, lost: ClusterMachine, down_s: float) -> None:
        async with self._quorum_turn:
            async with lost.turn:
                if not await soon(lambda: self._may_lose(lost), WAIT_S_MAX):
                    self._stage.trace.note(lost.name, "spared", "replace: the others have not all that it has")
                    return
                key = lost.quorum.local
                self._may_end("replace", lost)
                self._machines.lose(lost)
            await asyncio.sleep(down_s)
            auto_join = lost.is_controller and self._random.random() < 0.5
            machine = self._machines.replace(lost, auto_join)
            self._stage.replace_host(lost.name, machine.name, machine.number)
            self._stage.trace.note(machine.name, "replaces", lost.name)
            machine.start()
            admin = self._operator.admin()
            if lost.is_controller:
                await remove_voter(self._operator, admin, lost, key)
                await self._until(lambda: machine.is_up, f"{machine.name} is not up")
                if not auto_join:
                    await add_voter(self._operator, admin, machine, machine.quorum.local)
                await self._until(lambda: machine.is_up and not machine.is_out_of_voters, f"{machine.name} is not a voter")
        await self._until(lambda: machine.number in self._brokers(), f"broker {machine.number} is not registered")
        while left_behind(self._committed(), lost.number) is not None:
            await self._move_replicas(admin, lost.number, machine.number)
            await self._operator.make(
                f"unregisters broker {lost.number}",
                lambda: admin.unregister_broker(lost.number),
                ErrorCode.BROKER_ID_NOT_REGISTERED,
            )
            await self._until(lambda: lost.number not in self._brokers(), f"broker {lost.number} is still registered")
        self._stage.trace.note(lost.name, "unregistered", f"{machine.name} has its replicas")
        await admin.close()

    async def _move_replicas(self, admin: Admin, lost: int, new: int) -> None:
        """Reassign all replicas of a lost broker, and wait until that is done."""
        until_s = self._stage.now_s() + CHANGE_S_MAX
        while held := partitions_of(self._committed(), lost):
            waiting = [(name, state) for name, state in held.items() if lost not in state.removing_replicas]
            wanted: Moves = {name: moved(state, lost, [new, *sorted(self._brokers() - {lost})]) for name, state in waiting}
            if wanted:
                await self._reassign(admin, wanted)
            if self._stage.now_s() >= until_s:
                name, state = next(iter(held.items()))
                raise Violation(f"{name} has a replica on broker {lost} for {CHANGE_S_MAX:g} s, which was lost: {state}")
            await self._operator.pause(BACKOFF_S_MAX)

    async def _reassign(self, admin: Admin, wanted: Moves) -> None:
        try:
            results = await admin.alter_partition_reassignments(wanted)
        except KafkaError as error:
            self._operator.note("refused", f"reassigns {len(wanted)} partitions {error_name(error.code)}")
            return
        for name, replicas in wanted.items():
            refusal = results.errors.get(TopicPartition(*name))
            if refusal is None:
                self._operator.note("reassigns", f"{name} to {replicas}")
            else:
                self._operator.note("refused", f"reassigns {name} {error_name(refusal.code)}")

    def _brokers(self) -> set[int]:
        return set(self._committed().cluster.brokers)

    async def _until(self, condition: Callable[[], bool], otherwise: str) -> None:
        if not await soon(condition, CHANGE_S_MAX):
            raise Violation(f"{otherwise} after {CHANGE_S_MAX:g} s")


def partitions_of(image: MetadataImage, broker_id: int) -> dict[TopicPartition, PartitionState]:
    """The partitions that name a broker as a replica."""
    return {
        TopicPartition(topic.name, number): state
        for topic in image.topics.by_id.values()
        for number, state in topic.partitions.items()
        if broker_id in state.replicas
    }


def moved(state: PartitionState, lost: int, brokers: Sequence[int]) -> list[int]:
    """The replicas of a partition, with the first of `brokers` that has none in the place of a lost one."""
    replicas = state.final_replicas
    free = [broker_id for broker_id in brokers if broker_id not in replicas]
    at = replicas.index(lost)
    return [*replicas[:at], *free[:1], *replicas[at + 1 :]]


def left_behind(image: MetadataImage, lost: int) -> str | None:
    """What the metadata still has of a broker that was replaced."""
    if lost in image.cluster.brokers:
        return f"broker {lost}, which was lost, is registered"
    name = next(iter(partitions_of(image, lost)), None)
    return None if name is None else f"{name} has a replica on broker {lost}, which was lost"
