"""Assignments, releases and commits of a member are reported as its requests and answers have them."""

from typing import Any

from tests.support.nodes.sim_stage import TOPIC, Recording, on_stage

from ottla.client_core.machine import Request
from ottla.errors import NetworkError
from ottla.errors.codes import ErrorCode
from ottla.sim.checkers.checker import Place
from ottla.sim.clients.client import Stage
from ottla.sim.clients.group_client import GroupClient
from ottla.sim.clients.member import GroupObserver
from ottla.wire.base import Message
from ottla.wire.messages import consumer_group_heartbeat as beats
from ottla.wire.messages import offset_commit as commits
from ottla.wire.messages import offset_fetch as fetches
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


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
