"""What must hold of classic groups whatever their members do. Knows the bench's answers and its log, and no more than it must.

- Whoever asked is answered once, or is still waited for: nothing that is parked is forgotten.
- In one generation a partition has one owner, whoever asks and however often.
- Nobody commits in a generation that was told to be over. What was committed is what is read, also after a crash.
- The log, replayed, gives what lasted of every group at every point of time.
- Every member is either kept waiting or has a session that ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from tests.support.shards.classic_shard import Asked, ClassicBench, decoded

from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.classic_group_records import GroupMetadataKey

SETTLED = ("Empty", "Stable")


class DurableMember(NamedTuple):
    """A member, as a record tells of it."""

    member_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: bytes
    assignment: bytes


class Durable(NamedTuple):
    """A group, as its record tells of it."""

    generation: int = 0
    protocol_type: str = ""
    protocol_name: str | None = None
    leader_id: str | None = None
    members: tuple[DurableMember, ...] = ()


Lasted = dict[str, tuple[Durable, int]]
"""Groups by id, with what each has committed."""


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
    """Watches one bench, and the ones that are loaded from its log after a crash."""

    def __init__(self, bench: ClassicBench) -> None:
        self.bench = bench
        self.follower = ClassicBench(bench.table.settings)
        """Has replayed the log, and nothing else happens to it."""
        self.settled: dict[str, Durable] = {}
        self.committed: dict[str, int] = {}
        """The last offset that a group was told is committed."""
        self.snapshots: list[Lasted] = [{}]
        """What lasted after each record."""
        self.owners: dict[tuple[str, int, bytes], str] = {}
        self.told: dict[str, int] = {}
        """The newest generation that members of a group were told of."""

    # -- what happened

    def crashed(self) -> None:
        """The coordinator is gone with all that it did not write; another has read its log."""
        self.bench = self.bench.reloaded()
        for group_id, group in self.bench.table.by_id.items():
            assert isinstance(group, ClassicGroup)
            self.told[group_id] = group.generation

    def deleted(self, group_id: str) -> None:
        for known in (self.settled, self.told, self.committed):
            known.pop(group_id, None)
        self.owners = {key: owner for key, owner in self.owners.items() if key[0] != group_id}

    def notice_deletions(self) -> None:
        """Groups without members and offsets go by themselves."""
        for key, value in self.bench.log[len(self.follower.log) :]:
            record = decoded(key, value)
            if value is None and isinstance(record.key, GroupMetadataKey):
                self.deleted(record.key.group)

    def joined(self, group_id: str, asked: Asked) -> None:
        if asked.is_answered and asked.code == ErrorCode.NONE:
            self.told[group_id] = max(self.told.get(group_id, 0), asked.answer.generation_id)

    def synced(self, group_id: str, generation: int, owner: str, asked: Asked) -> None:
        """A SyncGroup that was asked for `owner`, an instance if it is static; assignments are one byte per partition."""
        if not asked.is_answered or asked.code != ErrorCode.NONE:
            return
        for partition in asked.answer.assignment:
            known = self.owners.setdefault((group_id, generation, bytes([partition])), owner)
            assert known == owner, f"partition {partition} of generation {generation} is {owner}'s, and {known}'s too"

    # -- what must hold

    def check(self) -> None:
        self._check_replies()
        for group in self.bench.table.by_id.values():
            assert isinstance(group, ClassicGroup)
            self._check_members(group)
            self._check_timers(group)
            self._check_assignments(group)
        self._check_log()

    def _check_replies(self) -> None:
        waiting = self.bench.waiting()
        assert len(waiting) == len(set(waiting))
        unanswered = [asked for asked in self.bench.asked if not asked.is_answered]
        assert set(waiting) == set(unanswered), f"{set(unanswered) ^ set(waiting)} are forgotten, or answered and kept"
        self.bench.asked[:] = unanswered

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
            assert not members or not group.have_all_joined, "all have joined, and nobody is told"

    def _check_timers(self, group: ClassicGroup) -> None:
        timers = self.bench.table.timers
        for member in group.members.values():
            name = ("classic-session", group.group_id, member.member_id)
            assert member.is_kept_waiting or name in timers, f"{member} of {group} may be silent for ever"
        for member_id in group.pending_joins:
            assert ("classic-session", group.group_id, member_id) in timers
        if group.state == "PreparingRebalance":
            assert ("classic-join", group.group_id) in timers
        if group.pending_syncs:
            assert ("classic-sync", group.group_id) in timers

    def _check_assignments(self, group: ClassicGroup) -> None:
        """What members were told they own is what the group knows, and what will be told again after a crash."""
        if group.state != "Stable":
            return
        by_owner = {member.instance_id or member.member_id: member.assignment for member in group.members.values()}
        for (group_id, generation, partition), owner in self.owners.items():
            if (group_id, generation) == (group.group_id, group.generation):
                assert partition in by_owner[owner], f"{owner} was told that {partition!r} is its own"

    def _check_log(self) -> None:
        for key, value in self.bench.log[len(self.follower.log) :]:
            self.follower.follow(key, value)
            self.snapshots.append(self._lasted(self.follower))
        live = self.bench.table.by_id
        assert set(live) == set(self.follower.table.by_id)
        for group_id, group in live.items():
            assert isinstance(group, ClassicGroup)
            if group.state in SETTLED:
                self.settled[group_id] = durable(group)
            lasted = self.follower.table.by_id[group_id]
            assert isinstance(lasted, ClassicGroup)
            assert durable(lasted) == self.settled.get(group_id, Durable())
            for bench in (self.bench, self.follower):
                assert bench.committed(group_id) == self.committed.get(group_id, -1)

    @staticmethod
    def _lasted(bench: ClassicBench) -> Lasted:
        groups = bench.table.by_id.items()
        return {key: (durable(group), bench.committed(key)) for key, group in groups if isinstance(group, ClassicGroup)}

    def commit(self, group_id: str, member_id: str, instance_id: str | None, generation: int, offset: int) -> None:
        """Try to commit."""
        group: Any = self.bench.table.by_id.get(group_id)
        code = self.bench.commit(member_id, generation, offset, group_id, instance_id)
        if code != ErrorCode.NONE:
            return
        self.committed[group_id] = offset
        if generation < 0:
            assert group is None or group.state == "Empty", "only members commit while there are any"
        else:
            # A group that was empty meanwhile may be in a generation that nobody was told of.
            assert self.told.get(group_id, 0) <= generation == group.generation
            assert member_id in group.members

    def check_old_generations(self, group_id: str, members: list[tuple[str, str | None]]) -> None:
        """Nobody could commit in a generation that is over."""
        group: Any = self.bench.table.by_id.get(group_id)
        for generation in range(self.told.get(group_id, 0) if group is not None else 0):
            for member_id, instance_id in members:
                with pytest.raises(KafkaError):
                    group.check_commit(member_id, instance_id, generation, 9, False, self.bench.now)

    def check_prefixes(self) -> None:
        """Loading any prefix anew gives what replaying it step by step gave."""
        step = max(1, len(self.bench.log) // 20)
        for count in range(0, len(self.snapshots), step):
            assert self._lasted(self.bench.reloaded(count)) == self.snapshots[count]

    def check_end(self) -> None:
        """When nobody says anything any more, everybody is answered, every group is empty and nothing is left to happen."""
        self.bench.advance(24 * 3_600_000)
        self.notice_deletions()
        self.check()
        assert not self.bench.asked
        assert all(group.state == "Empty" for group in self.bench.table.by_id.values())
        assert self.bench.timers == []
