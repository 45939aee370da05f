"""Invariants of classic groups, checked on the harness's responses and its log.

- Every request is answered once or is parked. No parked request is forgotten.
- In one generation a partition has one owner, however often members ask.
- An offset commit in an old generation is refused. A committed offset is the one that is read, also after a crash.
- Replaying any prefix of the log gives the durable state of every group at that time.
- Every member has a parked request or a session that expires.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from tests.support.shards.classic_harness import ClassicHarness, decoded
from tests.support.shards.shard_harness import Asked

from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.classic_group_records import GroupMetadataKey

SETTLED = ("Empty", "Stable")


class DurableMember(NamedTuple):
    """A member, as a group's record stores it."""

    member_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: bytes
    assignment: bytes


class Durable(NamedTuple):
    """A group, as its record stores it."""

    generation: int = 0
    protocol_type: str = ""
    protocol_name: str | None = None
    leader_id: str | None = None
    members: tuple[DurableMember, ...] = ()


Lasted = dict[str, tuple[Durable, int]]
"""Groups by id, each with its committed offset."""


def durable(group: ClassicGroup) -> Durable:
    members = tuple(
        DurableMember(
            each.member_id,
            each.instance_id,
            each.session_timeout_ms,
            each.rebalance_timeout_ms,
            each.metadata(group.protocol_name),
            each.assignment,
        )
        for each in group.members.values()
    )
    return Durable(group.generation, group.protocol_type, group.protocol_name, group.leader_id, members)


class ClassicChecks:
    """Checks one harness, and the harnesses that are loaded from its log after a crash."""

    def __init__(self, harness: ClassicHarness) -> None:
        self.harness = harness
        self.follower = ClassicHarness(harness.table.settings)
        """A harness that only replays the log."""
        self.settled: dict[str, Durable] = {}
        self.committed: dict[str, int] = {}
        """The last acknowledged offset commit of each group."""
        self.snapshots: list[Lasted] = [{}]
        """The durable state after each record."""
        self.owners: dict[tuple[str, int, bytes], str] = {}
        self.answered_generations: dict[str, int] = {}
        """The newest generation that a group's members have had a response for."""

    # -- what happened

    def crashed(self) -> None:
        """The coordinator lost everything it had not written; another has loaded its log."""
        self.harness = self.harness.reloaded()
        for group_id, group in self.harness.table.by_id.items():
            assert isinstance(group, ClassicGroup)
            self.answered_generations[group_id] = group.generation

    def deleted(self, group_id: str) -> None:
        for known in (self.settled, self.answered_generations, self.committed):
            known.pop(group_id, None)
        self.owners = {key: owner for key, owner in self.owners.items() if key[0] != group_id}

    def notice_deletions(self) -> None:
        """Forget the groups that the shard deleted because they have neither members nor offsets."""
        for key, value in self.harness.log[len(self.follower.log) :]:
            record = decoded(key, value)
            if value is None and isinstance(record.key, GroupMetadataKey):
                self.deleted(record.key.group)

    def joined(self, group_id: str, asked: Asked) -> None:
        if asked.is_answered and asked.code == ErrorCode.NONE:
            self.answered_generations[group_id] = max(self.answered_generations.get(group_id, 0), asked.answer.generation_id)

    def synced(self, group_id: str, generation: int, owner: str, asked: Asked) -> None:
        """A SyncGroup of `owner`, a member id or instance id. Assignments have one byte per partition."""
        if not asked.is_answered or asked.code != ErrorCode.NONE:
            return
        for partition in asked.answer.assignment:
            known = self.owners.setdefault((group_id, generation, bytes([partition])), owner)
            assert known == owner, f"partition {partition} of generation {generation} is {owner}'s, and {known}'s too"

    # -- what must hold

    def check(self) -> None:
        self._check_replies()
        for group in self.harness.table.by_id.values():
            assert isinstance(group, ClassicGroup)
            self._check_members(group)
            self._check_timers(group)
            self._check_assignments(group)
        self._check_log()

    def _check_replies(self) -> None:
        waiting = self.harness.waiting()
        assert len(waiting) == len(set(waiting))
        unanswered = [asked for asked in self.harness.asked if not asked.is_answered]
        assert set(waiting) == set(unanswered), f"{set(unanswered) ^ set(waiting)} are forgotten, or answered and still parked"
        self.harness.asked[:] = unanswered

    def _check_members(self, group: ClassicGroup) -> None:
        members = group.members
        assert all(member_id == member.member_id for member_id, member in members.items())
        assert group.joined_count == sum(member.join_reply is not None for member in members.values())
        assert group.static_ids == {each.instance_id: each.member_id for each in members.values() if each.is_static}
        assert (group.leader_id in members) if members else group.leader_id is None
        assert not set(group.pending_joins) & set(members)
        assert set(group.pending_syncs) <= set(members)
        assert (group.state == "Empty") == (not members) or group.state == "PreparingRebalance"
        for member in members.values():
            assert member.join_reply is None or group.state == "PreparingRebalance"
            assert member.sync_reply is None or group.state == "CompletingRebalance"
        if group.state in ("Stable", "CompletingRebalance"):
            assert all(member.metadata(group.protocol_name) is not None for member in members.values())
        if group.state == "PreparingRebalance" and not group.is_initial_rebalance:
            assert not members or not group.have_all_joined, "all have joined, and the rebalance does not complete"

    def _check_timers(self, group: ClassicGroup) -> None:
        timers = self.harness.table.timers
        for member in group.members.values():
            name = ("classic-session", group.group_id, member.member_id)
            assert member.is_kept_waiting or name in timers, f"{member} of {group} has no session timeout"
        for member_id in group.pending_joins:
            assert ("classic-session", group.group_id, member_id) in timers
        if group.state == "PreparingRebalance":
            assert ("classic-join", group.group_id) in timers
        if group.pending_syncs:
            assert ("classic-sync", group.group_id) in timers

    def _check_assignments(self, group: ClassicGroup) -> None:
        """The assignments in responses are those that the group has, and will return after a crash."""
        if group.state != "Stable":
            return
        by_owner = {member.instance_id or member.member_id: member.assignment for member in group.members.values()}
        for (group_id, generation, partition), owner in self.owners.items():
            if (group_id, generation) == (group.group_id, group.generation):
                assert partition in by_owner[owner], f"{owner} was assigned {partition!r}, which the group does not know"

    def _check_log(self) -> None:
        for key, value in self.harness.log[len(self.follower.log) :]:
            self.follower.follow(key, value)
            self.snapshots.append(self._lasted(self.follower))
        live = self.harness.table.by_id
        assert set(live) == set(self.follower.table.by_id)
        for group_id, group in live.items():
            assert isinstance(group, ClassicGroup)
            if group.state in SETTLED:
                self.settled[group_id] = durable(group)
            lasted = self.follower.table.by_id[group_id]
            assert isinstance(lasted, ClassicGroup)
            assert durable(lasted) == self.settled.get(group_id, Durable())
            for harness in (self.harness, self.follower):
                assert harness.committed(group_id) == self.committed.get(group_id, -1)

    @staticmethod
    def _lasted(harness: ClassicHarness) -> Lasted:
        groups = harness.table.by_id.items()
        return {key: (durable(group), harness.committed(key)) for key, group in groups if isinstance(group, ClassicGroup)}

    def commit(self, group_id: str, member_id: str, instance_id: str | None, generation: int, offset: int) -> None:
        """Commit an offset; check that it was allowed if it succeeded."""
        group: Any = self.harness.table.by_id.get(group_id)
        code = self.harness.commit(member_id, generation, offset, group_id, instance_id)
        if code != ErrorCode.NONE:
            return
        self.committed[group_id] = offset
        if generation < 0:
            assert group is None or group.state == "Empty", "only members commit while there are any"
        else:
            # A group that was empty in between may be in a generation that no member has had a response for.
            assert self.answered_generations.get(group_id, 0) <= generation == group.generation
            assert member_id in group.members

    def check_old_generations(self, group_id: str, members: list[tuple[str, str | None]]) -> None:
        """Offset commits in old generations are refused."""
        group: Any = self.harness.table.by_id.get(group_id)
        for generation in range(self.answered_generations.get(group_id, 0) if group is not None else 0):
            for member_id, instance_id in members:
                with pytest.raises(KafkaError):
                    group.check_commit(member_id, instance_id, generation, 9, False, self.harness.now)

    def check_prefixes(self) -> None:
        """Loading any prefix of the log gives the same as replaying it record by record."""
        step = max(1, len(self.harness.log) // 20)
        for count in range(0, len(self.snapshots), step):
            assert self._lasted(self.harness.reloaded(count)) == self.snapshots[count]

    def check_end(self) -> None:
        """When all members fall silent, every request is answered, every group becomes empty and no timer is left."""
        self.harness.advance(24 * 3_600_000)
        self.notice_deletions()
        self.check()
        assert not self.harness.asked
        assert all(group.state == "Empty" for group in self.harness.table.by_id.values())
        assert self.harness.timers == []
