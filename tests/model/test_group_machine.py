"""Classic groups under Hypothesis: any requests in any order, clients that give up, crash and rejoin, time that passes.

The invariants after every step are in tests/model/classic_model.py.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.model.classic_model import ClassicChecks
from tests.support.cases.examples import examples
from tests.support.shards.classic_harness import ClassicHarness
from tests.support.shards.shard_harness import Asked

from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode

GROUPS = st.sampled_from(["g", "g", "g", "h"])
INSTANCES = st.sampled_from([None, None, "i", "j"])
PROTOCOLS = st.sampled_from(
    [
        *[(("range", b"1"),)] * 4,
        (("range", b"2"),),
        *[(("range", b"1"), ("sticky", b"s"))] * 2,
        (("sticky", b"s"), ("range", b"1")),
        (("sticky", b"s"),),
    ]
)
TYPES = st.sampled_from([*["consumer"] * 9, "connect"])
TIMES_MS = st.sampled_from([0, 1, 1000, 3000, 6000, 9999, 10_000, 20_000, 60_000, 300_000])
PICK = st.integers(0, 30)
PARTITIONS = 8


class GroupMachine(RuleBasedStateMachine):
    """Two groups, and every member id that was ever handed out."""

    checks: ClassicChecks

    @initialize(max_size=st.sampled_from([2, 3, 100]), delay_ms=st.sampled_from([0, 3000]))
    def begin(self, max_size: int, delay_ms: int) -> None:
        self.checks = ClassicChecks(
            ClassicHarness(GroupSettings(group_max_size=max_size, group_initial_rebalance_delay_ms=delay_ms))
        )
        self.ids: dict[str, list[tuple[str, str | None]]] = {"g": [("nobody", None)], "h": []}
        self.joins: list[tuple[str, Asked, str | None]] = []
        self.syncs: list[tuple[str, int, str, Asked]] = []

    @property
    def harness(self) -> ClassicHarness:
        return self.checks.harness

    # -- what clients do

    @rule(
        group_id=GROUPS,
        instance_id=INSTANCES,
        protocols=PROTOCOLS,
        protocol_type=TYPES,
        version=st.sampled_from([0, 3, 4, 5, 8, 9]),
        timeouts=st.sampled_from([(10_000, 60_000), (6000, 6000), (30_000, 10_000)]),
    )
    def newcomer(
        self,
        group_id: str,
        instance_id: str | None,
        protocols: tuple[tuple[str, bytes], ...],
        protocol_type: str,
        version: int,
        timeouts: tuple[int, int],
    ) -> None:
        session_ms, rebalance_ms = timeouts
        asked = self.harness.join(
            "",
            protocols,
            group_id=group_id,
            instance_id=instance_id if version >= 5 else None,
            version=version,
            protocol_type=protocol_type,
            session_ms=session_ms,
            rebalance_ms=rebalance_ms,
        )
        if asked.is_answered and asked.code == ErrorCode.MEMBER_ID_REQUIRED:
            self.ids[group_id].append((asked.answer.member_id, None))
        self.joins.append((group_id, asked, instance_id if version >= 5 else None))

    @rule(group_id=GROUPS, pick=PICK, protocols=PROTOCOLS, version=st.sampled_from([3, 5, 9]), is_fenced=st.booleans())
    def rejoin(self, group_id: str, pick: int, protocols: tuple[tuple[str, bytes], ...], version: int, is_fenced: bool) -> None:
        member = self._pick(group_id, pick)
        if member is not None:
            member_id, instance_id = member
            instance_id = "i" if is_fenced and instance_id is not None else instance_id
            asked = self.harness.join(member_id, protocols, group_id=group_id, instance_id=instance_id, version=version)
            self.joins.append((group_id, asked, instance_id))

    @rule(group_id=GROUPS)
    def all_rejoin(self, group_id: str) -> None:
        """All members rejoin, as clients do after REBALANCE_IN_PROGRESS."""
        group = self._group(group_id)
        if group is not None:
            for member in [*group.members.values(), *group.pending_joins]:
                if isinstance(member, str):
                    asked = self.harness.join(member, (("range", b"1"),), group_id=group_id)
                    instance_id = None
                else:
                    instance_id = member.instance_id
                    asked = self.harness.join(member.member_id, member.protocols, group_id=group_id, instance_id=instance_id)
                self.joins.append((group_id, asked, instance_id))

    @rule(group_id=GROUPS, seed=st.integers(0, 9), newcomers=st.integers(0, 2), is_leader_first=st.booleans())
    def comes_to_rest(self, group_id: str, seed: int, newcomers: int, is_leader_first: bool) -> None:
        """All members rejoin and sync until the group is stable."""
        for _ in range(newcomers):
            self.newcomer(group_id, None, (("range", b"1"), ("sticky", b"s")), "consumer", 9, (10_000, 60_000))
        self.all_rejoin(group_id)
        self.harness.advance(self.harness.table.settings.group_initial_rebalance_delay_ms)
        self._learn()
        self.all_sync(group_id, seed, 0, is_leader_first)

    @rule(group_id=GROUPS, pick=PICK, seed=st.integers(0, 9), generation_off=st.sampled_from([0, 0, 0, 0, -1, 1]))
    def sync(self, group_id: str, pick: int, seed: int, generation_off: int) -> None:
        member = self._pick(group_id, pick)
        if member is not None:
            self._sync(group_id, *member, seed, generation_off)

    @rule(group_id=GROUPS, seed=st.integers(0, 9), leaves_out=st.sampled_from([0, 1]), is_leader_first=st.booleans())
    def all_sync(self, group_id: str, seed: int, leaves_out: int, is_leader_first: bool) -> None:
        group = self._group(group_id)
        if group is not None:
            members = [(each.member_id, each.instance_id) for each in group.members.values()]
            members.sort(key=lambda each: (each[0] == group.leader_id) != is_leader_first)
            for member_id, instance_id in members[: len(members) - leaves_out]:
                self._sync(group_id, member_id, instance_id, seed, 0)

    def _sync(self, group_id: str, member_id: str, instance_id: str | None, seed: int, generation_off: int) -> None:
        group = self._group(group_id)
        if group is None:
            return
        generation = group.generation + generation_off
        assignments = {each: bytearray() for each in [*group.members, "nobody"]}
        for partition in range(PARTITIONS):
            owner = list(assignments)[(partition + seed) % len(assignments)]
            assignments[owner].append(partition)
        handed_in = {each: bytes(data) for each, data in assignments.items()}
        asked = self.harness.sync(member_id, generation, handed_in, group_id=group_id, instance_id=instance_id)
        self.syncs.append((group_id, generation, instance_id or member_id, asked))

    @rule(group_id=GROUPS, pick=PICK, generation_off=st.sampled_from([0, 0, 0, -1, 1]))
    def heartbeat(self, group_id: str, pick: int, generation_off: int) -> None:
        member, group = self._pick(group_id, pick), self._group(group_id)
        if member is not None and group is not None:
            self.harness.heartbeat(member[0], group.generation + generation_off, group_id, member[1])

    @rule(group_id=GROUPS)
    def all_heartbeat(self, group_id: str) -> None:
        group = self._group(group_id)
        if group is not None:
            for member in list(group.members.values()):
                self.harness.heartbeat(member.member_id, group.generation, group_id, member.instance_id)

    @rule(group_id=GROUPS, picks=st.lists(PICK, min_size=1, max_size=3), is_by_instance=st.booleans())
    def leave(self, group_id: str, picks: list[int], is_by_instance: bool) -> None:
        members = [member for member in (self._pick(group_id, pick) for pick in picks) if member is not None]
        leaving = [("", instance_id) if is_by_instance else (member_id, instance_id) for member_id, instance_id in members]
        if leaving:
            self.harness.leave(*leaving, group_id=group_id)

    # -- what happens to them

    @rule(group_id=GROUPS, pick=PICK, generation_off=st.sampled_from([0, 0, 0, -1, 1]), offset=st.integers(0, 1000))
    def commit(self, group_id: str, pick: int, generation_off: int, offset: int) -> None:
        member, group = self._pick(group_id, pick), self._group(group_id)
        if member is not None and group is not None:
            self.checks.commit(group_id, *member, max(group.generation + generation_off, 0), offset)

    @rule(group_id=GROUPS, offset=st.integers(0, 1000))
    def commit_from_outside(self, group_id: str, offset: int) -> None:
        """An offset commit of a tool or of a consumer without membership. It creates the group."""
        self.checks.commit(group_id, "", None, -1, offset)

    @rule(time_ms=TIMES_MS)
    def time_passes(self, time_ms: int) -> None:
        self.harness.advance(time_ms)

    @rule()
    def crash(self) -> None:
        self._learn()
        self.checks.crashed()
        self.joins.clear()
        self.syncs.clear()

    @rule(group_id=GROUPS)
    def delete(self, group_id: str) -> None:
        group = self._group(group_id)
        if group is not None and group.state == "Empty":
            self.harness.ask("delete", lambda reply: self.harness.shard.offsets.delete_group(group_id, reply))

    # -- what must hold

    @invariant()
    @precondition(lambda self: hasattr(self, "checks"))
    def holds(self) -> None:
        self._learn()
        self.checks.notice_deletions()
        self.checks.check()
        for group_id, ids in self.ids.items():
            self.checks.check_old_generations(group_id, ids[-6:])

    def teardown(self) -> None:
        if hasattr(self, "checks"):
            self.checks.check_prefixes()
            self.checks.check_end()

    def _learn(self) -> None:
        """Note the responses that have come since the last call."""
        for group_id, asked, instance_id in self.joins:
            self.checks.joined(group_id, asked)
            if asked.is_answered and asked.code == ErrorCode.NONE:
                self.ids[group_id].append((asked.answer.member_id, instance_id))
        for group_id, generation, owner, asked in self.syncs:
            self.checks.synced(group_id, generation, owner, asked)
        self.joins = [each for each in self.joins if not each[1].is_answered]
        self.syncs = [each for each in self.syncs if not each[3].is_answered]

    def _group(self, group_id: str) -> ClassicGroup | None:
        group = self.harness.table.by_id.get(group_id)
        assert group is None or isinstance(group, ClassicGroup)
        return group

    def _pick(self, group_id: str, pick: int) -> tuple[str, str | None] | None:
        """One of the ids that were handed out, the latest first."""
        ids = self.ids[group_id]
        return ids[-1 - pick % len(ids)] if ids else None


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = settings(
    max_examples=examples(100), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
