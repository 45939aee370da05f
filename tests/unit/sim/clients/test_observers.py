"""Observers report assignments, commits and transactions of clients as their requests and answers have them."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.support.nodes.sim_stage import TOPIC, Recording, on_stage

from ottla.client_core.machine import Request
from ottla.errors import NetworkError
from ottla.errors.codes import ErrorCode
from ottla.sim.checkers.checker import Checker, Checkers, Deletion, Place, Transaction, Violation
from ottla.sim.clients.app import App, AppObserver, Ending, Vanished, _InputObserver
from ottla.sim.clients.client import Client, Stage
from ottla.sim.clients.group_client import Cleaner, GroupClient
from ottla.sim.clients.member import GroupObserver
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork
from ottla.sim.plan import AppPlan
from ottla.sim.trace import Trace
from ottla.wire.base import Message
from ottla.wire.messages import consumer_group_heartbeat as beats
from ottla.wire.messages import offset_commit as commits
from ottla.wire.messages import offset_fetch as fetches
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup


def exchange(observer: GroupObserver, message: Message, response: Any, node: int = 1) -> None:
    request = Request(message, node)
    observer.sent(request, message, 1)
    if response is None:
        observer.failed(request, NetworkError("lost"))
    else:
        observer.answered(request, response, 1)


def beat(epoch: int, *held: int) -> beats.ConsumerGroupHeartbeatRequest:
    owned = [beats.ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=TOPIC.topic_id, partitions=list(held))]
    return beats.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch, topic_partitions=owned)


def answer(epoch: int, *numbers: int, code: int = 0) -> beats.ConsumerGroupHeartbeatResponse:
    parts = [beats.ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=TOPIC.topic_id, partitions=list(numbers))]
    assignment = beats.Assignment(topic_partitions=parts)
    return beats.ConsumerGroupHeartbeatResponse(error_code=code, member_epoch=epoch, assignment=assignment)


def test_a_partition_is_given_up_when_the_member_says_so_and_not_before() -> None:
    def body(stage: Stage, checker: Recording) -> None:
        observer = GroupObserver(GroupClient(stage, "m0", "g"), "consumer", lambda: [TOPIC])
        exchange(observer, beat(0), answer(1, 0, 1))
        exchange(observer, beat(1, 0, 1), answer(2, 0))
        assert checker.names() == ["heartbeat_answered"] * 2
        exchange(observer, beat(2, 0), answer(2, 0))
        assert checker.events[2] == ("given_up", "g", "m", [Place(TOPIC, 1)])
        exchange(observer, beat(2, 0), answer(0, code=ErrorCode.UNKNOWN_MEMBER_ID))
        assert checker.events[-1] == ("member_fenced", "g", "m")
        assert [epoch for epoch, _, _ in observer.past] == [1, 2, 2]

    on_stage(body)


def test_a_member_that_joins_again_gives_up_what_it_does_not_name() -> None:
    def body(stage: Stage, checker: Recording) -> None:
        observer = GroupObserver(GroupClient(stage, "m0", "g"), "consumer", lambda: [TOPIC])
        exchange(observer, beat(0), answer(1, 0, 1))
        exchange(observer, beat(0), answer(2, 1))
        assert checker.names() == ["heartbeat_answered", "given_up", "heartbeat_answered"]
        assert checker.events[1] == ("given_up", "g", "m", [Place(TOPIC, 0), Place(TOPIC, 1)])

    on_stage(body)


def test_a_heartbeat_is_heard_only_by_what_serves_the_group_all_the_time() -> None:
    def body(stage: Stage, checker: Recording) -> None:
        shards: dict[str, object] = {"g": None}
        stage.serving_shard = lambda group, node: shards[group]
        observer = GroupObserver(GroupClient(stage, "m0", "g"), "consumer", lambda: [TOPIC])
        first, second = object(), object()
        for sent_to, answered_by in ((None, None), (None, first), (first, first), (first, second), (first, None)):
            shards["g"] = sent_to
            request = Request(HeartbeatRequest(group_id="g", member_id="m", generation_id=1), 1)
            observer.sent(request, request.message, 1)
            shards["g"] = answered_by
            observer.answered(request, HeartbeatResponse(), 1)
        # A node that loads a group answers every Heartbeat with success, also for members that are fenced in its log.
        assert [event[1].is_heard for event in checker.events] == [False, False, True, False, False]

    on_stage(body)


def test_other_answers_are_never_given_while_a_group_is_loaded() -> None:
    def body(stage: Stage, checker: Recording) -> None:
        stage.serving_shard = lambda group, node: None
        stage.is_coordinator = lambda group, node, since_s: node == 1
        observer = GroupObserver(GroupClient(stage, "m0", "g"), "consumer", lambda: [TOPIC])
        for node in (1, 2):
            exchange(observer, beat(1, 0), answer(1, 0), node)
        assert [event[1].is_heard for event in checker.events] == [True, False]

    on_stage(body)


def test_answers_from_before_a_leave_are_not_reported() -> None:
    def body(stage: Stage, checker: Recording) -> None:
        observer = GroupObserver(GroupClient(stage, "m0", "g"), "consumer", lambda: [TOPIC])
        earlier = Request(beat(1))
        observer.sent(earlier, earlier.message, 1)
        exchange(observer, beat(-1), answer(-1))
        observer.answered(earlier, answer(1, 0), 1)
        assert checker.events == []

    on_stage(body)


def test_a_refused_commit_may_have_been_made_by_an_attempt_without_an_answer() -> None:
    def commit() -> commits.OffsetCommitRequest:
        part = commits.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        topics = [commits.OffsetCommitRequestTopic(topic_id=TOPIC.topic_id, partitions=[part])]
        return commits.OffsetCommitRequest(group_id="g", member_id="m", generation_id_or_member_epoch=1, topics=topics)

    def refusal() -> commits.OffsetCommitResponse:
        part = commits.OffsetCommitResponsePartition(partition_index=0, error_code=ErrorCode.STALE_MEMBER_EPOCH)
        topics = [commits.OffsetCommitResponseTopic(topic_id=TOPIC.topic_id, partitions=[part])]
        return commits.OffsetCommitResponse(topics=topics)

    def body(stage: Stage, checker: Recording) -> None:
        observer = GroupObserver(GroupClient(stage, "m0", "g"), "consumer", lambda: [TOPIC])
        exchange(observer, commit(), refusal())
        assert checker.events[-1][2] == [Place(TOPIC, 0)]
        exchange(observer, commit(), None)
        exchange(observer, commit(), refusal())
        assert checker.events[-1][2] == []

    on_stage(body)


def test_committed_offsets_of_a_deposed_coordinator_are_reported_as_such() -> None:
    def body(stage: Stage, checker: Recording) -> None:
        stage.is_coordinator = lambda group, node, since_s: (group, node) == ("g", 1)
        observer = GroupObserver(GroupClient(stage, "m0", "g"), "consumer", lambda: [TOPIC])
        part = fetches.OffsetFetchResponsePartitions(partition_index=0, committed_offset=5)
        topic = fetches.OffsetFetchResponseTopics(topic_id=TOPIC.topic_id, partitions=[part])
        response = fetches.OffsetFetchResponse(groups=[fetches.OffsetFetchResponseGroup(group_id="g", topics=[topic])])
        for node in (1, 2):
            exchange(observer, fetches.OffsetFetchRequest(), response, node)
        found = {Place(TOPIC, 0): 5}
        assert checker.events == [("offsets_answered", "g", found, 0.0, 0.0, is_deposed) for is_deposed in (False, True)]

    on_stage(body)


@pytest.mark.parametrize(("is_asked", "text"), [(False, "the program has asked nothing"), (True, r"has asked to abort a\.1")])
def test_an_ending_that_was_not_asked_for_fails_the_run(is_asked: bool, text: str) -> None:
    def body(stage: Stage, checker: Recording) -> None:
        observer = AppObserver(Client(stage, "a"), "id", "g")
        commit = EndTxnRequest(transactional_id="id", producer_id=7, producer_epoch=1, committed=True)
        if is_asked:
            observer.ending = Ending(Transaction("a.1", "id"), {}, is_commit=False)
        observer.sent(Request(commit), commit, 5)
        assert checker.events == []

    with pytest.raises(Violation, match=text):
        on_stage(body)


def test_a_commit_is_reported_with_each_attempt_and_its_new_epoch() -> None:
    def body(stage: Stage, checker: Recording) -> None:
        observer = AppObserver(Client(stage, "a"), "id", "g")
        init = InitProducerIdRequest(transactional_id="id")
        request = Request(init)
        observer.sent(request, init, 5)
        observer.answered(request, InitProducerIdResponse(producer_id=7, producer_epoch=0), 5)
        ending = observer.ending = Ending(Transaction("a.1", "id"), {Place(TOPIC, 0): 4})
        message = EndTxnRequest(transactional_id="id", producer_id=7, producer_epoch=0, committed=True)
        lost, answered = Request(message), Request(message)
        observer.sent(lost, message, 5)
        observer.failed(lost, NetworkError("lost"))
        observer.sent(answered, message, 5)
        observer.answered(answered, EndTxnResponse(producer_id=7, producer_epoch=1), 5)
        assert observer.unknown_endings == 1
        assert [commit.offsets for commit in ending.commits] == [{Place(TOPIC, 0): 4}] * 2
        wanted = ["commit_requested", "commit_sent"]
        assert checker.names() == ["producer_handed", *wanted, *wanted, "producer_obeyed", "producer_handed"]
        assert checker.events[-1][1].epoch == 1

    on_stage(body)


class OneRecord:
    """A consumer whose poll returns something."""

    async def poll(self, *_: Any) -> list[object]:
        return [object()]


def on_app(body: Callable[[App, _InputObserver], None]) -> None:
    """Call `body` with a program whose group is coordinated by node 1."""

    def with_stage(stage: Stage, _: Recording) -> None:
        stage.is_coordinator = lambda group, node, since_s: (group, node) == ("app-group", 1)
        app = App(stage, "app.0", AppPlan("app", True, (2,), 1000), 2, [Place(TOPIC, 0)], [])
        app._reading = _InputObserver(app)
        body(app, app._reading)

    on_stage(with_stage)


def answer_offsets(observer: _InputObserver, node: int, code: int = ErrorCode.NONE) -> None:
    message = OffsetFetchRequest()
    request = Request(message, node)
    observer.sent(request, message, 10)
    observer.answered(request, OffsetFetchResponse(groups=[OffsetFetchResponseGroup(error_code=code)]), 10)


def test_offsets_of_a_deposed_coordinator_mislead() -> None:
    def body(app: App, observer: _InputObserver) -> None:
        answer_offsets(observer, 2, ErrorCode.NOT_COORDINATOR)
        answer_offsets(observer, 1)
        assert (observer.coordinator, observer.is_misled) == (1, False)
        answer_offsets(observer, 2)
        assert (observer.coordinator, observer.is_misled) == (2, True)
        answer_offsets(observer, 1)
        assert observer.is_misled, "some positions are from the deposed one"

    on_app(body)


def test_a_misled_program_vanishes_before_its_next_transaction() -> None:
    def body(app: App, observer: _InputObserver) -> None:
        answer_offsets(observer, 2)
        nothing: Any = None
        consumer: Any = OneRecord()
        with pytest.raises(Vanished):
            app._transact(nothing, nothing, consumer, nothing).send(None)

    on_app(body)


class Told(Checker):
    """Collects the outcomes of deletions."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def deletion_acknowledged(self, deletion: Deletion, answered_s: float) -> None:
        self.outcomes.append("deleted")

    def deletion_refused(self, deletion: Deletion) -> None:
        self.outcomes.append("refused")

    def offsets_answered(
        self, group: str, found: dict[Place, int], requested_s: float, answered_s: float, is_deposed: bool = False
    ) -> None:
        self.outcomes.append("deposed" if is_deposed else "unknown")


@pytest.mark.parametrize(
    ("code", "outcomes"),
    [
        (ErrorCode.NONE, ["deleted"]),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ["refused"]),
        (ErrorCode.NOT_COORDINATOR, []),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, []),
    ],
)
def test_a_deletion_that_the_next_coordinator_may_have_is_not_refused(code: ErrorCode, outcomes: list[str]) -> None:
    told, loop = Told(), VirtualLoop(60)

    async def run() -> None:
        stage = Stage(1, SimNetwork(Random(1)), Trace(loop), Checkers([told]), ("n1", "n2", "n3"))
        cleaner = Cleaner(stage, "g", list, has_members=False)
        cleaner._settle(Deletion("g", None, 0.0), code, 1)

    loop.run(run())
    assert told.outcomes == outcomes


def test_a_deposed_coordinator_may_not_know_a_group() -> None:
    told, loop = Told(), VirtualLoop(60)

    async def run() -> None:
        stage = Stage(1, SimNetwork(Random(1)), Trace(loop), Checkers([told]), ("n1", "n2", "n3"))
        stage.is_coordinator = lambda group, node, since_s: node == 1
        cleaner = Cleaner(stage, "g", list, has_members=False)
        for node in (1, 2):
            cleaner._settle(Deletion("g", None, 0.0), ErrorCode.GROUP_ID_NOT_FOUND, node)

    loop.run(run())
    assert told.outcomes == ["refused", "unknown", "refused", "deposed"]
