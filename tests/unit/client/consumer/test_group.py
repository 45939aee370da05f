"""Subscriptions and commits, in both faces and both group protocols, against a real broker."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from tests.support.peers.topics import await_true

from ottla.client.admin.sync import Admin
from ottla.client.consumer.core import ConsumerCore
from ottla.client.consumer.group import assignors_of
from ottla.client.consumer.listener import RebalanceListener
from ottla.client.consumer.sync import Consumer
from ottla.client_core.group.assignors import Assignor
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.config.client import consumer_settings
from ottla.errors import ConfigError, FencedInstanceIdError, IllegalStateError, WakeupError
from ottla.ids import TopicPartition
from ottla.testing import Broker

LONG = 60.0


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings for each group protocol in turn."""
    if request.param == "consumer":
        return {"group_protocol": "consumer"}
    return {"group_protocol": "classic", "heartbeat_interval_ms": 100}


class Seen(RebalanceListener):
    """Notes every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, set[int]]] = []

    def on_assigned(self, partitions: set[TopicPartition]) -> None:
        self.calls.append(("assigned", {each.partition for each in partitions}))

    def on_revoked(self, partitions: set[TopicPartition]) -> None:
        self.calls.append(("revoked", {each.partition for each in partitions}))


def both(topic: str) -> set[TopicPartition]:
    return {TopicPartition(topic, 0), TopicPartition(topic, 1)}


def poll_until(consumer: Any, is_true: Any) -> list[Any]:
    """Poll until a condition holds; returns the records that came."""
    found: list[Any] = []
    for _ in range(600):
        found += consumer.poll(0.1)
        if is_true(found):
            return found
    raise AssertionError(f"the condition never held; {len(found)} records came, assignment {consumer.assignment()}")


def test_close_raises_nothing_of_a_membership_that_failed_between_polls(face: Any, broker: Broker, topic: str) -> None:
    given = {"group_id": f"group-of-{topic}", "group_protocol": "consumer", "group_instance_id": "same"}
    with face(broker.bootstrap_servers, **given) as one:
        one.subscribe([topic])
        poll_until(one, lambda _: one.assignment())
        with face(broker.bootstrap_servers, **given) as other:
            # Not refused before this poll is over: it would raise the error itself.
            with broker.faults.fail("ConsumerGroupHeartbeat", "COORDINATOR_LOAD_IN_PROGRESS"):
                other.subscribe([topic])
                other.poll(0)
            events = getattr(other, "_inner", other)._core.group.events
            waiting = threading.Event()
            for _ in range(600):
                if events:
                    break
                waiting.wait(0.1)
            assert [type(event).__name__ for event in events] == ["Failed"]


def test_every_poll_of_a_consumer_that_another_has_replaced_raises(face: Any, broker: Broker, topic: str) -> None:
    """A program that logs the error and goes on must not wait for records in silence."""
    given = {"group_id": f"group-of-{topic}", "group_instance_id": "i", "heartbeat_interval_ms": 100}
    with face(broker.bootstrap_servers, **given) as one, face(broker.bootstrap_servers, **given) as other:
        one.subscribe([topic])
        poll_until(one, lambda _: one.assignment())
        other.subscribe([topic])
        poll_until(other, lambda _: other.assignment())
        for _ in range(3):
            with pytest.raises(FencedInstanceIdError):
                one.poll(LONG)
        one.unsubscribe()
        one.assign((topic, 0))
        one.seek((topic, 0), 0)
        assert one.poll(LONG)


def test_a_leader_that_looks_up_offsets_still_assigns_the_topic(broker: Broker, topic: str) -> None:
    """The topic is not its own: only the other member has subscribed to it."""
    own = f"{topic}-own"
    broker.create_topic(own)
    given = {"group_id": f"group-of-{topic}", "heartbeat_interval_ms": 100}
    with Consumer(broker.bootstrap_servers, **given) as leader, Consumer(broker.bootstrap_servers, **given) as other:
        leader.subscribe([own])
        poll_until(leader, lambda _: leader.assignment())
        other.subscribe([topic])
        while not other.assignment():
            leader.poll(0.05)
            other.poll(0.05)
        generation = leader.group_metadata().generation_id
        assert leader.end_offsets((topic, 0)) == {TopicPartition(topic, 0): 10}
        for _ in range(10):
            leader.poll(0.05)
            other.poll(0.05)
        assert other.assignment() == both(topic)
        assert leader.group_metadata().generation_id == generation


def test_commits_of_records_offsets_and_everything(face: Any, broker: Broker, topic: str) -> None:
    first, second = sorted(both(topic))
    given = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with face(broker.bootstrap_servers, **given) as consumer:
        consumer.assign([first, second])
        assert consumer.committed(first, second) == {first: None, second: None}
        records = poll_until(consumer, lambda found: len(found) == 20)
        consumer.commit(next(record for record in records if record.partition == 0 and record.offset == 3))
        consumer.commit({second: OffsetAndMetadata(5, "text")})
        assert consumer.committed(first, second)[first].offset == 4
        assert consumer.committed(second) == OffsetAndMetadata(5, "text", None)
        ended: list[Any] = []
        consumer.commit_async(callback=lambda offsets, error: ended.append((set(offsets), error)))
        poll_until(consumer, lambda _: ended)
        assert ended == [({first, second}, None)]
        assert [each.offset for each in consumer.committed(first, second).values()] == [10, 10]
        with pytest.raises(ValueError, match="negative"):
            consumer.commit({first: -1})


def test_committed_takes_and_returns_as_position_does(face: Any, broker: Broker, topic: str) -> None:
    one, two = sorted(both(topic))
    with face(broker.bootstrap_servers, group_id=f"group-of-{topic}") as consumer:
        consumer.commit({one: 3})
        stored = {one: OffsetAndMetadata(3)}
        assert consumer.committed(one) == consumer.committed(topic, 0) == OffsetAndMetadata(3)
        assert consumer.committed([one]) == stored
        assert consumer.committed(two) is None
        for given in ((one, two), ([one, two],), ((one, two),)):
            assert consumer.committed(*given) == {**stored, two: None}


def test_automatic_commits_cover_what_was_handed_out_before(face: Any, broker: Broker, topic: str) -> None:
    first = min(both(topic))
    given = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest"}

    class Crash(Exception):
        pass

    def crash_at(offset: int) -> None:
        with face(broker.bootstrap_servers, **given) as consumer:
            consumer.assign(first)
            for record in consumer:
                if record.offset == offset:
                    raise Crash

    with pytest.raises(Crash):
        crash_at(3)
    with face(broker.bootstrap_servers, **given) as consumer:
        assert consumer.committed(first).offset == 3
        consumer.assign(first)
        assert consumer.poll(LONG, max_records=2)[0].offset == 3
    with face(broker.bootstrap_servers, **given) as consumer:
        assert consumer.committed(first).offset == 5


def test_a_listener_may_seek_and_commit_but_not_poll(face: Any, broker: Broker, topic: str) -> None:
    given = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with face(broker.bootstrap_servers, **given) as consumer:

        def seek(partitions: set[TopicPartition]) -> None:
            for each in partitions:
                consumer.seek(each, 8)

        consumer.subscribe([topic], on_assigned=seek)
        records = poll_until(consumer, lambda found: len(found) == 4)
        assert {record.offset for record in records} == {8, 9}


def test_an_exception_of_a_listener_reaches_the_poll(face: Any, broker: Broker, topic: str) -> None:
    with face(broker.bootstrap_servers, group_id=f"group-of-{topic}", auto_offset_reset="earliest") as consumer:

        def fail(partitions: set[TopicPartition]) -> None:
            raise KeyError("listener")

        consumer.subscribe([topic], on_assigned=fail)
        with pytest.raises(KeyError, match="listener"):
            poll_until(consumer, lambda _: False)
        assert len(poll_until(consumer, lambda found: len(found) == 20)) == 20


def test_close_without_time_leaves_the_group(face: Any, broker: Broker, topic: str, protocol: Any) -> None:
    group, seen = f"group-of-{topic}", Seen()
    with face(broker.bootstrap_servers, group_id=group, auto_offset_reset="earliest", **protocol) as consumer:
        consumer.subscribe([topic], seen)
        poll_until(consumer, len)
        consumer.close(0)
    assert seen.calls[-1] == ("revoked", {0, 1})
    with Admin(broker.bootstrap_servers) as admin:
        # The answer may not have been waited for.
        await_true(lambda: admin.describe_consumer_groups([group])[group].members == (), "the member to have left")


def test_close_ends_in_time_if_no_commit_is_answered(face: Any, broker: Broker, topic: str) -> None:
    with face(broker.bootstrap_servers, group_id=f"group-of-{topic}", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        poll_until(consumer, len)
        with broker.faults.hang("OffsetCommit"):
            began_s = time.monotonic()
            consumer.close(0.5)
            assert time.monotonic() - began_s < 20


@pytest.mark.parametrize("call", ["close", "unsubscribe"])
def test_a_listener_may_not_end_its_consumer(face: Any, broker: Broker, topic: str, call: str) -> None:
    """The call would wait for the event that is being handled, and call the listener again."""
    with face(broker.bootstrap_servers, group_id=f"group-of-{topic}", auto_offset_reset="earliest") as consumer:

        def end(partitions: set[TopicPartition]) -> Any:
            return getattr(consumer, call)()

        consumer.subscribe([topic], on_assigned=end)
        with pytest.raises(IllegalStateError, match=rf"{call}\(\) inside of a rebalance listener"):
            poll_until(consumer, len)
        assert len(poll_until(consumer, len)) > 0


@pytest.mark.parametrize("call", ["close", "unsubscribe"])
def test_a_listener_that_raises_does_not_keep_a_member_in_its_group(
    face: Any, broker: Broker, topic: str, protocol: Any, call: str
) -> None:
    """Others would wait for its partitions until the session times out."""
    group = f"group-of-{topic}"

    def fail(partitions: set[TopicPartition]) -> None:
        raise RuntimeError("the listener failed")

    with face(broker.bootstrap_servers, group_id=group, auto_offset_reset="earliest", **protocol) as consumer:
        consumer.subscribe([topic], on_revoked=fail)
        poll_until(consumer, len)
        with pytest.raises(RuntimeError, match="the listener failed"):
            getattr(consumer, call)()
        with Admin(broker.bootstrap_servers) as admin:
            described = admin.describe_consumer_groups([group])[group]
        assert described.members == ()
        if call == "unsubscribe":
            assert consumer.assignment() == set()
            consumer.assign((topic, 0))


def test_an_event_of_a_poll_that_was_cut_short_is_handled_by_the_next(
    face: Any, broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Ctrl-C or a cancelled task, before the listener is called."""
    begin, seen, cuts = ConsumerCore.begin_event, Seen(), [True]

    async def cut_once(self: ConsumerCore, event: Any) -> None:
        if cuts:
            raise InterruptedError(cuts.pop())
        await begin(self, event)

    monkeypatch.setattr(ConsumerCore, "begin_event", cut_once)
    with face(broker.bootstrap_servers, group_id=f"group-of-{topic}", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic], seen)
        with pytest.raises(InterruptedError):
            poll_until(consumer, len)
        assert seen.calls == []
        assert len(poll_until(consumer, lambda found: len(found) == 20)) == 20
        assert seen.calls == [("assigned", {0, 1})]


def test_wakeup_ends_a_poll_that_commits_before_partitions_are_revoked(face: Any, broker: Broker, topic: str) -> None:
    raised: list[BaseException] = []
    given = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest", "heartbeat_interval_ms": 100}
    with face(broker.bootstrap_servers, **given) as consumer:
        consumer.subscribe([topic])
        poll_until(consumer, len)

        def poll() -> None:
            try:
                while True:
                    consumer.poll(None)
            except WakeupError as error:
                raised.append(error)

        with broker.faults.delay("OffsetCommit", 2.0, times=1) as fault:
            consumer.enforce_rebalance()
            thread = threading.Thread(target=poll, daemon=True)
            thread.start()
            fault.await_hits()
            consumer.wakeup()
            thread.join(60)
        assert len(raised) == 1


def test_subscribe_and_assign_exclude_each_other(face: Any, broker: Broker, topic: str) -> None:
    with face(broker.bootstrap_servers, group_id=f"group-of-{topic}") as consumer:
        consumer.subscribe([topic])
        with pytest.raises(IllegalStateError, match="cannot be mixed"):
            consumer.assign((topic, 0))
        consumer.unsubscribe()
        consumer.assign((topic, 0))
        with pytest.raises(IllegalStateError, match="cannot be mixed"):
            consumer.subscribe([topic])
        with pytest.raises(IllegalStateError, match="needs a subscription"):
            consumer.enforce_rebalance()


def test_own_assignors_are_made_and_others_refused() -> None:
    class Mine(Assignor):
        name = "mine"

        def assign(self, members: Any, topics: Any) -> Any:
            return {member.member_id: [] for member in members}

    def chosen(given: Any) -> list[Assignor]:
        return assignors_of(
            consumer_settings("localhost:9092", None, {"group_id": "g", "partition_assignment_strategy": given})
        )

    assert [each.name for each in chosen(["range", "cooperative-sticky"])] == ["range", "cooperative-sticky"]
    assert [each.name for each in chosen([Mine])] == ["mine"]
    with pytest.raises(ConfigError, match="Assignor"):
        chosen([dict])
