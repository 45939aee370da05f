"""Records that the replicas do not replicate in time: their requests fail, and the coordinator serves on with its state."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from tests.support.nodes.held_partitions import HeldPartitions, virtual, waiting
from tests.support.nodes.transaction_node import TransactionNode
from tests.support.shards.tally_shard import TallyShard, tally_runtime

from ottla.broker.handlers.groups import heartbeat, join_group, sync_group
from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.coordinators.runtime import CoordinatorRuntime
from ottla.coordinator.contract import Effects, Producer
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import DIRECTORY_UNASSIGNED, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

T = TypeVar("T")
LATE = ErrorCode.COORDINATOR_NOT_AVAILABLE


async def opened(commit_timeout_ms: int = 500) -> tuple[HeldPartitions, CoordinatorRuntime[TallyShard]]:
    """A coordinator with a follower that fetches only when the test says so."""
    held = await HeldPartitions.open()
    await held.make_topic(OFFSETS_TOPIC, replicas=(1, 2))
    runtime = tally_runtime(held, commit_timeout_ms)
    runtime.follow()
    return held, runtime


def set_to(runtime: CoordinatorRuntime[TallyShard], name: str, number: int) -> "asyncio.Task[Any]":
    return asyncio.ensure_future(runtime.call(name, lambda shard, reply, now: shard.set(name, number, reply, now)))


def look(runtime: CoordinatorRuntime[TallyShard], name: str) -> "asyncio.Task[Any]":
    return asyncio.ensure_future(runtime.look(name, lambda shard, now: shard.numbers.get(name)))


def replicate(held: HeldPartitions, topic: str = OFFSETS_TOPIC) -> None:
    """Let the follower fetch from the log's end."""
    partition = held.partition(topic)
    partition.follower_fetches(2, partition.log.log_end_offset, 0, -1)


async def replicated(held: HeldPartitions, topic: str, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns. The follower fetches meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.sleep(0.01)
        replicate(held, topic)
    return await task


async def code_of(answer: "asyncio.Future[Any]") -> int:
    with pytest.raises(KafkaError) as refused:
        await asyncio.wait_for(answer, 30)
    return refused.value.code


def test_late_request_fails_and_the_shard_serves_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        hosted = runtime.shard_at(0)
        parked = waiting(runtime.ask("a", TallyShard.park))
        assert await code_of(set_to(runtime, "a", 1)) == LATE
        assert runtime.shard_at(0) is hosted
        assert not parked.done(), "its answer does not depend on the late record"
        for _ in range(3):
            assert await code_of(look(runtime, "a")) == LATE, "what it would say could still be lost"
        again = set_to(runtime, "a", 2)
        await asyncio.sleep(0.01)
        replicate(held)
        assert await again == "a=2"
        assert await look(runtime, "a") == 2
        assert runtime.shard_at(0) is hosted
        assert held.partition(OFFSETS_TOPIC).log.log_end_offset == 2

    virtual(scenario())
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1, "one line, not one for every request"


def test_each_request_has_the_whole_timeout_from_its_own_start() -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        now_s = asyncio.get_running_loop().time
        started_s = now_s()
        first = set_to(runtime, "a", 1)
        await asyncio.sleep(0.2)
        second = set_to(runtime, "b", 2)
        await asyncio.sleep(0.2)
        third = look(runtime, "a")
        assert await code_of(first) == LATE
        assert now_s() - started_s == pytest.approx(0.5, abs=0.01)
        assert await code_of(second) == LATE
        assert now_s() - started_s == pytest.approx(0.7, abs=0.01)
        await asyncio.sleep(0.1)
        replicate(held)
        assert await third == 1, "0.8 s after the first request, but 0.4 s after its own start"
        idle_until_s = now_s() + 2
        while now_s() < idle_until_s:  # the timer of requests that were answered must not fail later ones
            written = set_to(runtime, "c", 3)
            await asyncio.sleep(0.07)
            replicate(held)
            assert await written == "c=3"

    virtual(scenario())


def test_orders_are_carried_out_once_committed_however_late(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        carried: list[Any] = []
        monkeypatch.setattr(runtime, "carry_out", lambda hosted, orders: carried.extend(orders))

        def order(shard: TallyShard, reply: Any, now: Any) -> Effects:
            effects = shard.set("a", 1, reply, now)
            effects.orders.append("send markers")
            return effects

        assert await code_of(asyncio.ensure_future(runtime.call("a", order))) == LATE
        await asyncio.sleep(60)
        assert carried == []
        replicate(held)
        assert carried == ["send markers"]

    virtual(scenario())


def test_lost_leadership_fails_what_waits_and_drops_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        carried: list[Any] = []
        monkeypatch.setattr(runtime, "carry_out", lambda hosted, orders: carried.extend(orders))
        hosted = runtime.shard_at(0)

        def order(shard: TallyShard, reply: Any, now: Any) -> Effects:
            effects = shard.set("a", 1, reply, now)
            effects.orders.append("send markers")
            return effects

        assert await code_of(asyncio.ensure_future(runtime.call("a", order))) == LATE
        reading = look(runtime, "a")
        await asyncio.sleep(0.01)
        await held.change(OFFSETS_TOPIC, 0, leader=2)
        runtime.follow()
        assert await code_of(reading) == ErrorCode.NOT_COORDINATOR
        assert hosted.is_over
        assert carried == []

    virtual(scenario())


def test_next_request_of_a_failed_connection_finds_the_shard_loading() -> None:
    """Its answer lets a connection go on while the shard is being given up: the node still leads the partition."""

    async def scenario() -> None:
        _, runtime = await opened()
        found: list[KafkaError] = []

        def go_on(response: object, failure: object) -> None:
            with pytest.raises(KafkaError) as refused:
                runtime.shard_at(0)
            found.append(refused.value)

        runtime.ask("a", lambda shard, reply, now: shard.set("a", 1, reply, now)).deliver_to(go_on)
        runtime.ask("a", TallyShard.park).deliver_to(go_on)
        await asyncio.sleep(0.01)
        runtime.shard_at(0).give_up()
        assert [refusal.code for refusal in found] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
        await runtime.stop()
        with pytest.raises(KafkaError, match="this node is stopping") as stopped:
            runtime.shard_at(0)
        assert stopped.value.code == ErrorCode.NOT_COORDINATOR

    virtual(scenario())


def test_many_connections_go_on_when_their_record_is_committed() -> None:
    """Each has a second request behind the one that waits, which is handled as soon as that one is answered."""

    async def scenario() -> None:
        held, runtime = await opened()
        answers: list[Any] = []

        def go_on(response: object, failure: object) -> None:
            runtime.ask("a", lambda shard, reply, now: Effects.answer(reply, "second"), may_write=False).deliver_to(done)

        def done(response: object, failure: object) -> None:
            answers.append(response or failure)

        for number in range(1000):
            runtime.ask("a", lambda shard, reply, now, number=number: shard.set("a", number, reply, now)).deliver_to(go_on)  # type: ignore[misc]  # bound at once
        await asyncio.sleep(0.01)
        replicate(held)
        assert answers == ["second"] * 1000

    virtual(scenario())


def test_bug_behind_one_reply_does_not_keep_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        _, runtime = await opened()
        told: list[object] = []

        def break_down(response: object, failure: object) -> None:
            raise ValueError("a bug")

        def note(response: object, failure: object) -> None:
            told.append(failure)

        for each in (break_down, note):
            runtime.ask("a", TallyShard.park).deliver_to(each)
            runtime.ask("a", lambda shard, reply, now: shard.set("a", 1, reply, now)).deliver_to(each)
        await asyncio.sleep(0.01)
        runtime.shard_at(0).give_up()
        assert len(told) == 2

    virtual(scenario())
    assert "could not be delivered" in caplog.text


def test_shard_given_up_during_an_append_answers_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """An append can let other requests go on, and one of those can fail."""

    async def scenario() -> None:
        held, runtime = await opened()
        partition, hosted = held.partition(OFFSETS_TOPIC), runtime.shard_at(0)
        append = Partition.append

        def append_and_fail(*arguments: Any, **more: Any) -> Any:
            info = append(*arguments, **more)
            hosted.give_up()
            return info

        monkeypatch.setattr(Partition, "append", append_and_fail)
        proof = partition.log.producers.begin_verification(7, -1, 0, False, 0)
        reply = hosted.ask(lambda shard, reply, now: shard.set_in_transaction("a", 1, Producer(7, 0), reply, now), proof)
        assert await code_of(waiting(reply)) == ErrorCode.NOT_COORDINATOR

    virtual(scenario())


async def with_follower(topic: str) -> TransactionNode:
    node = await TransactionNode.open()
    await node.held.change(topic, 0, replicas=[1, 2], isr=[1, 2], directories=[DIRECTORY_UNASSIGNED] * 2)
    node.follow()
    return node


def test_classic_group_goes_on_where_it_was_when_its_records_are_late() -> None:
    async def scenario() -> None:
        node = await with_follower(OFFSETS_TOPIC)

        async def join(member_id: str) -> Any:
            request = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=45_000,
                rebalance_timeout_ms=60_000,
                member_id=member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="p")],
            )
            return await node.ask(join_group, request, 5)

        async def sync(member_id: str, *assigned: SyncGroupRequestAssignment) -> Any:
            request = SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id, assignments=list(assigned))
            return await node.ask(sync_group, request, 3)

        async def beat(member_id: str) -> int:
            request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
            code: int = (await node.ask(heartbeat, request, 4)).error_code
            return code

        member_id = (await replicated(node.held, OFFSETS_TOPIC, join(""))).member_id
        hosted = node.coordinators.groups.shard_at(0)
        assert (await replicated(node.held, OFFSETS_TOPIC, join(member_id))).generation_id == 1
        assert (await sync(member_id, SyncGroupRequestAssignment(member_id=member_id, assignment=b"a"))).error_code == LATE
        assert await beat(member_id) == LATE
        again = asyncio.ensure_future(sync(member_id))
        await asyncio.sleep(0.01)
        assert not again.done()
        replicate(node.held)
        assert (await again).assignment == b"a", "the assignment of the request that failed"
        assert await beat(member_id) == 0
        assert node.coordinators.groups.shard_at(0) is hosted

    virtual(scenario())


def test_late_end_of_a_transaction_is_carried_out_and_answered_again() -> None:
    async def scenario() -> None:
        node = await with_follower(TRANSACTIONS_TOPIC)

        producer = await replicated(node.held, TRANSACTIONS_TOPIC, node.initialise("a"))
        assert (await replicated(node.held, TRANSACTIONS_TOPIC, node.produce("a", producer, 0, b"kept"))).error_code == 0
        hosted = node.host.shard_at(0)
        assert (await node.end("a", producer, True))[0] == LATE
        assert node.values() == [], "no marker before the decision is committed"
        assert (await node.end("a", producer, True))[0] == ErrorCode.CONCURRENT_TRANSACTIONS, "retriable"
        replicate(node.held, TRANSACTIONS_TOPIC)
        assert node.values() == [b"kept"]
        code, after = await replicated(node.held, TRANSACTIONS_TOPIC, node.end("a", producer, True))
        assert (code, after.id, after.epoch) == (0, producer.id, producer.epoch + 1)
        assert node.host.shard_at(0) is hosted

    virtual(scenario())
