"""A rule machine over one group with members of both protocols: it is upgraded and downgraded while they live.

Classic members are modelled as cooperative consumers: they send the partitions they own when they join, revoke those they were
not assigned and join again; one of them leads a classic group. Invariants: no partition is held by two members; replaying the
log gives a group of the same type; and once all members take steps again, every partition is held.
"""

from __future__ import annotations

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support.cases.examples import examples
from tests.support.shards.consumer_harness import told_by_records
from tests.support.shards.mixed_harness import MixedHarness, assignment, held_by
from tests.support.shards.shard_harness import Asked

from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode
from ottla.wire.consumer_protocol import read_subscription
from ottla.wire.messages.join_group import JoinGroupResponseMember

TOPIC, PARTITIONS = "t", 5
BEGIN_AGAIN = {
    *(ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND),
    *(ErrorCode.ILLEGAL_GENERATION, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
}


class Newer:
    """A consumer of the new protocol."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.held: set[int] = set()
        self.assigned: set[int] = set()

    def step(self, harness: MixedHarness) -> None:
        """Apply the assignment, and send a heartbeat."""
        self.held = set(self.assigned)
        if self.epoch:
            asked = harness.heartbeat(self.member_id, self.epoch, {TOPIC: sorted(self.held)})
        else:
            asked = harness.heartbeat(self.member_id, 0, {}, subscribed_topic_names=[TOPIC], rebalance_timeout_ms=20_000)
        if asked.code:
            assert asked.code in BEGIN_AGAIN, asked
            self.epoch, self.held, self.assigned = 0, set(), set()
            return
        self.epoch = harness.response(asked).member_epoch
        given = harness.given(asked)
        if given is not None:
            self.assigned = set(given.get(TOPIC, ()))

    def leave(self, harness: MixedHarness) -> None:
        harness.heartbeat(self.member_id, -1)


class Older:
    """A cooperative consumer of the classic protocol."""

    def __init__(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.held: set[int] = set()
        self.join: Asked | None = None
        self.sync: Asked | None = None
        self.must_join = True
        self.is_ghost = False
        """It was removed and does not know yet: others may hold its partitions. Its next assignment ends this."""

    def step(self, harness: MixedHarness) -> None:
        """Apply the last response, and send the next request."""
        if self.join is not None:
            self._joined(harness)
        elif self.sync is not None:
            self._synced()
        elif self.must_join:
            self.join = harness.classic_join(self.member_id, [TOPIC], {TOPIC: sorted(self.held)}, session_ms=30_000)
        else:
            code = harness.classic_heartbeat(self.member_id, self.generation)
            self.must_join = code == ErrorCode.REBALANCE_IN_PROGRESS
            if code in BEGIN_AGAIN:
                self._begin_again(code)

    def _begin_again(self, code: int) -> None:
        if code != ErrorCode.ILLEGAL_GENERATION:
            self.member_id = ""
        self.held, self.must_join, self.generation, self.is_ghost = set(), True, -1, False

    def _joined(self, harness: MixedHarness) -> None:
        assert self.join is not None
        if not self.join.is_answered:
            return
        asked, self.join = self.join, None
        if asked.code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = asked.answer.member_id
        elif asked.code == ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        elif asked.code:
            assert asked.code in BEGIN_AGAIN, asked
            self._begin_again(asked.code)
        else:
            self.member_id, self.generation = asked.answer.member_id, asked.answer.generation_id
            self.sync = harness.classic_sync(self.member_id, self.generation, _shared(asked.answer.members))

    def _synced(self) -> None:
        assert self.sync is not None
        if not self.sync.is_answered:
            return
        asked, self.sync = self.sync, None
        if asked.code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.must_join = True
        elif asked.code:
            assert asked.code in BEGIN_AGAIN, asked
            self._begin_again(asked.code)
        else:
            given = set(held_by(asked.answer.assignment).get(TOPIC, ())) if asked.answer.assignment else set()
            self.must_join = bool(self.held - given)  # others may get what it revoked once it has joined again
            self.held, self.is_ghost = given, False

    def leave(self, harness: MixedHarness) -> None:
        if self.member_id:
            harness.classic_leave(self.member_id)


def _shared(members: list[JoinGroupResponseMember]) -> dict[str, bytes]:
    """A cooperative leader's assignment: partitions that others own are left out until they are revoked."""
    owners = {
        partition: member.member_id
        for member in members
        for each in read_subscription(bytes(member.metadata)).owned_partitions
        for partition in each.partitions
    }
    ids = sorted(member.member_id for member in members)
    given: dict[str, list[int]] = {member_id: [] for member_id in ids}
    for partition in range(PARTITIONS) if ids else ():
        member_id = ids[partition % len(ids)]
        if owners.get(partition, member_id) == member_id:
            given[member_id].append(partition)
    return {member_id: assignment({TOPIC: partitions}) for member_id, partitions in given.items()}


class MixedGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        settings = GroupSettings(group_consumer_assignment_interval_ms=0, group_initial_rebalance_delay_ms=0)
        self.harness = MixedHarness({TOPIC: PARTITIONS}, settings)
        self.clients: dict[str, Newer | Older] = {}
        self.count = 0

    @rule(is_newer=st.booleans())
    @precondition(lambda self: len(self.clients) < 4)
    def come(self, is_newer: bool) -> None:
        self.count += 1
        name = f"m{self.count}"
        self.clients[name] = Newer(name) if is_newer else Older()

    @rule(data=st.data(), steps=st.integers(1, 4))
    @precondition(lambda self: self.clients)
    def step(self, data: st.DataObject, steps: int) -> None:
        client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
        for _ in range(steps):
            self._step(client)

    @rule(steps=st.integers(1, 8))
    def all_step(self, steps: int) -> None:
        for _ in range(steps):
            for client in self.clients.values():
                self._step(client)

    def _step(self, client: Newer | Older) -> None:
        client.step(self.harness)
        self.harness.advance(0)  # what is due now is done now
        self._find_ghosts()
        self.nothing_is_held_twice()

    @rule(data=st.data())
    @precondition(lambda self: self.clients)
    def leave(self, data: st.DataObject) -> None:
        self.clients.pop(data.draw(st.sampled_from(sorted(self.clients)))).leave(self.harness)

    @rule(time_ms=st.sampled_from([1000, 10_000, 31_000, 61_000]))
    def wait(self, time_ms: int) -> None:
        self.harness.advance(time_ms)
        self._find_ghosts()

    # -- what must hold

    def _members(self) -> dict[str, object]:
        group = self.harness.shard.table.by_id.get("g")
        return {} if group is None else group.members  # type: ignore[attr-defined]  # both kinds have them

    def _find_ghosts(self) -> None:
        members = self._members()
        for client in self.clients.values():
            if isinstance(client, Older) and client.member_id not in members:
                client.is_ghost = True

    def _held(self) -> list[int]:
        members = self._members()
        there = [client for client in self.clients.values() if client.member_id in members]
        return [each for client in there if not getattr(client, "is_ghost", False) for each in client.held]

    @invariant()
    def nothing_is_held_twice(self) -> None:
        held = self._held()
        assert len(held) == len(set(held)), held

    @invariant()
    def the_log_tells_the_same(self) -> None:
        again = self.harness.reloaded().shard
        assert told_by_records(again) == told_by_records(self.harness.shard)
        kinds = {group_id: group.type for group_id, group in self.harness.shard.table.by_id.items()}
        assert {group_id: group.type for group_id, group in again.table.by_id.items()} == kinds

    def teardown(self) -> None:
        for _ in range(40):
            self.harness.advance(1000)
            for client in self.clients.values():
                self._step(client)
        if not self.clients:
            return
        assert sorted(self._held()) == list(range(PARTITIONS)), self.harness.shard.table.by_id["g"]
        has_newer = any(isinstance(client, Newer) for client in self.clients.values())
        assert isinstance(self.harness.shard.table.by_id["g"], ConsumerGroup) is has_newer
        assert self.harness.shard.table.by_id["g"].state == "Stable"


MixedGroupMachine.TestCase.settings = hypothesis_settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestMixedGroupMachine = MixedGroupMachine.TestCase
