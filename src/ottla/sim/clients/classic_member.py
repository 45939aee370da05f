"""A member of a classic group, static or dynamic: joins, assigns if it leads, heartbeats, commits, leaves.

Sometimes it is killed and returns as a new member; sometimes it commits for a generation that is over, like a consumer that was
suspended. Its assignor is round-robin. It releases all partitions before it joins again.

Some groups are mixed: their other members use the consumer protocol, and while there is one of these, the broker assigns. Then
generations are member epochs, and the checkers treat this member like the others.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.errors.codes import ErrorCode
from ottla.sim.checkers.checker import Assigned, Beat, Place
from ottla.sim.clients.client import BACKOFF_S_MAX, Stage
from ottla.sim.clients.embedded import assignment_of, places_in, subscription_to
from ottla.sim.clients.group_client import NOT_A_MEMBER, GroupClient
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SESSION_TIMEOUT_MS = 1_000
REBALANCE_TIMEOUT_MS = 1_500
REJOIN = (ErrorCode.REBALANCE_IN_PROGRESS,)


class ClassicMember(GroupClient):
    """Stays in its group until the run is ending. `places` returns the partitions to assign."""

    def __init__(
        self,
        stage: Stage,
        name: str,
        group: str,
        instance: str | None,
        places: Callable[[], list[Place]],
        is_mixed: bool = False,
    ) -> None:
        super().__init__(stage, name, group)
        self._is_mixed = is_mixed
        self._instance = instance
        self._places = places
        self._member = ""
        self._generation: int | None = None
        self._held: list[Place] = []
        self._past: list[tuple[int, str, list[Place]]] = []
        self.committed = 0
        self.generations = 0

    async def run(self) -> None:
        await self.step_by_step()
        if self.random.random() < 0.5 and self._member:
            await self._leave()

    async def step(self) -> None:
        await (self._join() if self._generation is None else self._stay())

    # Joining

    async def _join(self) -> None:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member,
            group_instance_id=self._instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="dealt", metadata=subscription_to(self._places()))],
        )
        self.note("join", f"{self.group} {self._member!r}")
        answer = await self.ask(request, 9)
        code = answer.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member = answer.member_id
        elif code in NOT_A_MEMBER:
            self._evicted()
        elif code:
            self.explain("JoinGroup", code, *REJOIN)
            await self.pause(BACKOFF_S_MAX)
        else:
            self._member = answer.member_id
            self.note("joined", f"generation {answer.generation_id} as {self._member} of {len(answer.members)}")
            await self._sync(answer.generation_id, [each.member_id for each in answer.members], answer.skip_assignment)

    async def _sync(self, generation: int, members: list[str], is_settled: bool) -> None:
        parts = {} if is_settled else self._deal(members)
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=generation,
            member_id=self._member,
            group_instance_id=self._instance,
            protocol_type="consumer",
            protocol_name="dealt",
            assignments=[SyncGroupRequestAssignment(member_id=member, assignment=part) for member, part in parts.items()],
        )
        link, requested_s = await self.link(), self.stage.now_s()
        answer = await link.request(request, version=5)
        if answer.error_code in NOT_A_MEMBER:
            self._evicted()
        elif answer.error_code:
            self.explain("SyncGroup", answer.error_code, *REJOIN)
            await self.pause(BACKOFF_S_MAX)
        else:
            self._held = places_in(bytes(answer.assignment), self._places())
            self._generation = generation
            self.generations += 1
            self.note("assigned", f"generation {generation} {' '.join(map(str, self._held))}")
            answered_s = self.stage.now_s()
            if self._is_mixed:
                beat = Beat(self.group, self._member, generation, self._held, requested_s, answered_s, is_joined=True)
                self.stage.checkers.heartbeat_answered(beat)
            else:
                assigned = Assigned(self.group, generation, self._member, self._instance, self._held, requested_s, answered_s)
                self.stage.checkers.generation_assigned(assigned)

    def _deal(self, members: list[str]) -> dict[str, bytes]:
        if not members:
            return {}
        places, ordered = self._places(), sorted(members)
        return {member: assignment_of(places[index :: len(ordered)]) for index, member in enumerate(ordered)}

    # Staying

    async def _stay(self) -> None:
        chance = self.random.random()
        if chance < 0.55:
            await self._heartbeat()
        elif chance < 0.8:
            await self._commit(self._generation or 0, self._member, self._held)
        elif chance < 0.88:
            await self.fetch_offsets(self._places())
        elif chance < 0.95 and self._past:
            generation, member, held = self.random.choice(self._past)
            if not self._is_mixed or (generation, member) != (self._generation, self._member):
                await self._commit(generation, member, held)
        elif chance > 0.96:
            self.note("restart", self._member)
            self.hang_up()
            self._forget()

    async def _heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self._generation or 0,
            member_id=self._member,
            group_instance_id=self._instance,
        )
        link, requested_s = await self.link(), self.stage.now_s()
        code = (await link.request(request, version=4)).error_code
        if code in NOT_A_MEMBER:
            self.note("refused", f"Heartbeat {code}")
            self._evicted()
        elif code in REJOIN:
            self.stage.checkers.given_up(self.group, self._member, self._held)
            self._remember()
        elif code:
            self.explain("Heartbeat", code)
        elif self._is_mixed:
            beat = Beat(self.group, self._member, self._generation or 0, None, requested_s, self.stage.now_s())
            self.stage.checkers.heartbeat_answered(beat)

    async def _commit(self, generation: int, member: str, places: list[Place]) -> None:
        if not places:
            return
        protocol = "consumer" if self._is_mixed else "classic"
        codes = await self.commit(protocol, places, member=member, instance=self._instance, epoch=generation)
        for code in codes.values():
            self.committed += code == ErrorCode.NONE
            if code != ErrorCode.NONE and code not in NOT_A_MEMBER:
                self.explain("OffsetCommit", code, *REJOIN)

    def _remember(self) -> None:
        """Leave this generation, to join the next."""
        if self._generation is not None:
            self._past.append((self._generation, self._member, self._held))
        self._generation, self._held = None, []

    def _evicted(self) -> None:
        """The coordinator does not know this member: start again as a new one."""
        self.stage.checkers.member_fenced(self.group, self._member)
        self._forget()

    def _forget(self) -> None:
        """Start again as a new member."""
        self._remember()
        self._member = ""

    async def _leave(self) -> None:
        self.stage.checkers.given_up(self.group, self._member, self._held)
        who = MemberIdentity(member_id=self._member, group_instance_id=self._instance)
        answer = await self.ask_until_answered(LeaveGroupRequest(group_id=self.group, members=[who]), 5)
        self.note("left", f"{self.group} {answer.error_code}")
