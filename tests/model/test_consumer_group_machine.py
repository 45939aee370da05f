"""A rule machine over one consumer group: members join, heartbeat, lose responses, leave, fall silent; topics are created
and deleted.

Members are modelled as clients: a client holds what it was assigned until it has revoked it. Invariants: no partition is held
by two members; epochs only grow; replaying the log gives the same state; offset commits of other epochs are refused unless the
partition has been held since; and once all members heartbeat again, each gets its target assignment.

The group believes its members. A member that reports no owned partitions has declined what it was assigned, and another member
may get it. If the response to that heartbeat is lost, a client can still act on the assignment before it: the next response
must fence it or correct it. Apache Kafka does the same (`tests/compat/broker/test_lost_heartbeats.py`).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support.cases.examples import examples
from tests.support.shards.consumer_harness import ConsumerHarness, told_by_records
from tests.support.shards.shard_harness import Asked

from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

NAMES = ("ta", "tb", "u")
Held = set[tuple[Uuid, int]]
BEGIN_AGAIN = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}


class Client:
    """A consumer, as far as its group can see it."""

    def __init__(self, member_id: str, instance_id: str | None, subscription: dict[str, Any]) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.subscription = subscription
        self.epoch = 0
        self.held: Held = set()
        self.assigned: Held = set()
        self.must_send_all = False
        """The last response did not arrive, so the next heartbeat has every field."""
        self.is_outdated = False
        """It reported its partitions and got no response: the group may have revoked the rest of its assignment."""

    def reset(self) -> None:
        self.epoch, self.held, self.assigned, self.is_outdated = 0, set(), set(), False

    def hear(self, response: ConsumerGroupHeartbeatResponse) -> None:
        self.epoch, self.must_send_all, self.is_outdated = response.member_epoch, False, False
        if response.assignment is not None:
            parts = response.assignment.topic_partitions
            self.assigned = {(each.topic_id, partition) for each in parts for partition in each.partitions}


class ConsumerGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.harness = ConsumerHarness({"ta": 3}, GroupSettings(group_consumer_assignment_interval_ms=1000))
        self.clients: dict[str, Client] = {}
        self.count = 0
        self.epochs = (0, 0)
        self.member_epochs: dict[str, int] = {}

    # -- what happens

    def _new(self, instance_id: str | None, subscription: dict[str, Any]) -> Client:
        self.count += 1
        client = Client(f"m{self.count}", instance_id, subscription)
        self.clients[client.member_id] = client
        return client

    def _beat(self, client: Client, is_lost: bool, tells_held: bool) -> Asked:
        harness = self.harness
        fields: dict[str, Any] = {"instance_id": client.instance_id}
        owned: dict[Uuid, list[int]] | None = None
        is_full = client.epoch == 0 or client.must_send_all
        if is_full:
            fields |= {"rebalance_timeout_ms": 20_000, **client.subscription}
        if is_full or tells_held:
            owned = {}
            for topic_id, partition in sorted(client.held):
                owned.setdefault(topic_id, []).append(partition)
        asked = harness.heartbeat(client.member_id, client.epoch, owned, **fields)
        if is_lost:
            client.must_send_all = True
            client.is_outdated = client.is_outdated or owned is not None
        elif asked.code in BEGIN_AGAIN:
            client.reset()
        elif asked.code == ErrorCode.FENCED_INSTANCE_ID or asked.code == ErrorCode.UNRELEASED_INSTANCE_ID:
            del self.clients[client.member_id]
        else:
            assert asked.code == 0, asked
            client.hear(harness.response(asked))
        return asked

    @rule(
        topics=st.sets(st.sampled_from(NAMES), max_size=3),
        regex=st.sampled_from([None, None, "t.*", "u"]),
        is_static=st.booleans(),
        assignor=st.sampled_from([None, "uniform", "range"]),
        is_lost=st.booleans(),
    )
    @precondition(lambda self: len(self.clients) < 5)
    def join(self, topics: set[str], regex: str | None, is_static: bool, assignor: str | None, is_lost: bool) -> None:
        subscription = {
            "subscribed_topic_names": sorted(topics),
            "subscribed_topic_regex": regex,
            "server_assignor": assignor,
        }
        self._beat(self._new(f"i{self.count}" if is_static else None, subscription), is_lost, False)

    @rule(data=st.data(), is_lost=st.booleans(), tells_held=st.booleans())
    @precondition(lambda self: self.clients)
    def heartbeat(self, data: st.DataObject, is_lost: bool, tells_held: bool) -> None:
        self._beat(self.clients[data.draw(st.sampled_from(sorted(self.clients)))], is_lost, tells_held)

    @rule(data=st.data())
    @precondition(lambda self: self.clients)
    def reconcile(self, data: st.DataObject) -> None:
        """A client applies its assignment, and reports it."""
        client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
        is_outdated = client.is_outdated
        client.held = set(client.assigned)
        self._beat(client, False, True)
        if is_outdated:  # the response has fenced it, or says what it may keep
            client.held &= client.assigned

    @rule(data=st.data(), topics=st.sets(st.sampled_from(NAMES), max_size=3), is_lost=st.booleans())
    @precondition(lambda self: self.clients)
    def resubscribe(self, data: st.DataObject, topics: set[str], is_lost: bool) -> None:
        client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
        client.subscription = {"subscribed_topic_names": sorted(topics), "subscribed_topic_regex": ""}
        client.must_send_all = True
        self._beat(client, is_lost, True)

    @rule(data=st.data(), is_for_now=st.booleans())
    @precondition(lambda self: self.clients)
    def leave(self, data: st.DataObject, is_for_now: bool) -> None:
        client = self.clients.pop(data.draw(st.sampled_from(sorted(self.clients))))
        epoch = -2 if is_for_now and client.instance_id is not None else -1
        left = self.harness.heartbeat(client.member_id, epoch, instance_id=client.instance_id)
        assert left.code in {0, *BEGIN_AGAIN, ErrorCode.FENCED_INSTANCE_ID}
        if epoch == -2 and left.code == 0:
            self._beat(self._new(client.instance_id, client.subscription), False, False)

    @rule(time_ms=st.sampled_from([500, 1000, 11_000, 21_000, 46_000]))
    def wait(self, time_ms: int) -> None:
        self.harness.advance(time_ms)

    @rule(name=st.sampled_from(NAMES), count=st.one_of(st.none(), st.integers(1, 6)))
    def change_topic(self, name: str, count: int | None) -> None:
        known = self.harness.topics.partition_count(name)
        if count is None and not known:
            return
        self.harness.set_topic(name, None if count is None else max(known, count))

    @rule()
    def reload(self) -> None:
        """The coordinator is loaded again from its log."""
        again = self.harness.reloaded()
        again._topic_ids, again._uuids, again.now_ms = self.harness._topic_ids, self.harness._uuids, 0
        again.now_ms = self.harness.now_ms
        again.submit(again.shard.loaded(again.now))
        self.harness = again

    # -- what must hold

    def _members(self) -> dict[str, Any]:
        group = self.harness.shard.table.by_id.get("g")
        return {} if group is None else dict(self.harness.group().members)

    @invariant()
    def nothing_is_held_twice(self) -> None:
        members = self._members()
        given = [
            (topic_id, partition)
            for member in members.values()
            for held in (member.assigned, member.revoking)
            for topic_id, partitions in held.items()
            for partition in partitions
        ]
        assert len(given) == len(set(given))
        assert set(given) == set(self.harness.group().holder_epochs) if members else True
        held = [each for member_id, client in self.clients.items() if member_id in members for each in client.held]
        assert len(held) == len(set(held))

    @invariant()
    def clients_hold_only_what_they_were_given(self) -> None:
        for member_id, member in self._members().items():
            client = self.clients.get(member_id)
            if client is not None and client.epoch:
                assert all(member.given_epoch(topic_id, partition) is not None for topic_id, partition in client.held)

    @invariant()
    def epochs_only_grow(self) -> None:
        if "g" not in self.harness.shard.table.by_id:
            return
        group = self.harness.group()
        assert group.target_epoch <= group.epoch
        assert (group.epoch, group.target_epoch) >= self.epochs
        assert group.target_epoch >= self.epochs[1]
        self.epochs = (group.epoch, group.target_epoch)
        for member_id, member in group.members.items():
            assert member.epoch <= group.target_epoch
            if member.epoch > 0:
                assert member.epoch >= self.member_epochs.get(member_id, 0)
                self.member_epochs[member_id] = member.epoch
        for member_id in set(self.member_epochs) - set(group.members):
            del self.member_epochs[member_id]

    @invariant()
    def the_log_tells_the_same(self) -> None:
        assert told_by_records(self.harness.reloaded().shard) == told_by_records(self.harness.shard)

    @invariant()
    def commits_of_other_epochs_are_refused(self) -> None:
        for member_id, member in self._members().items():
            for epoch in range(1, member.epoch + 2):
                for (topic_id, partition), _ in list(self.harness.group().holder_epochs.items()):
                    since = member.given_epoch(topic_id, partition)
                    may = epoch == member.epoch or (epoch < member.epoch and since is not None and since <= epoch)
                    assert self._may_commit(member_id, epoch, topic_id, partition) is may

    def _may_commit(self, member_id: str, epoch: int, topic_id: Uuid, partition: int) -> bool:
        try:
            check = self.harness.group().check_commit(member_id, None, epoch, 10, False, self.harness.now)
            if check is not None:
                check("t", topic_id, partition)
        except KafkaError as refused:
            return refused.code != ErrorCode.STALE_MEMBER_EPOCH
        return True

    def teardown(self) -> None:
        """All clients heartbeat: each gets its target assignment, and together they hold every partition."""
        self.harness.advance(46_000)  # members without a client expire
        for _ in range(12):
            self.harness.advance(1000)
            for client in list(self.clients.values()):
                self._beat(client, False, True)
                client.held = set(client.assigned)
                if client.member_id in self.clients:
                    self._beat(client, False, True)
        if not self.clients:
            return
        group = self.harness.group()
        assert set(group.members) == set(self.clients)
        assert group.state == "Stable", group
        topics = self.harness.topics
        wanted = {
            (topics.id_of(name), partition) for name in group.subscribed() for partition in range(topics.partition_count(name))
        }
        assert set().union(*(client.held for client in self.clients.values())) == wanted
        for member_id, client in self.clients.items():
            target = {(topic_id, each) for topic_id, parts in group.target_of(member_id).items() for each in parts}
            assert client.held == target
            names = {topics.id_of(name) for name in group.topics_of(group.members[member_id])}
            assert {topic_id for topic_id, _ in client.held} <= names


ConsumerGroupMachine.TestCase.settings = hypothesis_settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestConsumerGroupMachine = ConsumerGroupMachine.TestCase


class Picks:
    """Replaces Hypothesis' data in a rule: always draws the same client."""

    def __init__(self, member_id: str) -> None:
        self._member_id = member_id

    def draw(self, _: Any) -> Any:
        return self._member_id


@pytest.mark.parametrize("is_retaken", [False, True])
def test_client_is_corrected_when_the_reply_to_its_resubscription_is_lost(is_retaken: bool) -> None:
    machine = ConsumerGroupMachine()

    def check() -> None:
        for each in machine.invariants:
            each.function(machine)

    def join() -> None:
        machine.join(topics={"ta"}, regex=None, is_static=False, assignor=None, is_lost=False)
        check()

    def reconcile(member_id: str) -> None:
        machine.reconcile(data=Picks(member_id))
        check()

    join()
    machine.resubscribe(data=Picks("m1"), topics=set(), is_lost=True)
    check()
    if is_retaken:
        machine.wait(time_ms=1000)
        join()
        reconcile("m2")
        assert len(machine.clients["m2"].held) == 3
    assert len(machine.clients["m1"].assigned) == 3
    reconcile("m1")
    assert not machine.clients["m1"].held
    assert not machine.clients["m1"].assigned
    machine.teardown()
