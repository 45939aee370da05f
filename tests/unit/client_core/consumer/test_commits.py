"""Commits of offsets: their order, what is retried, what ends them, and what they say of the member."""

from typing import Any

import pytest
from tests.support.machines.consumer_cluster import (
    TOPIC,
    FakeCluster,
    find_coordinator,
    finder_of,
    known_metadata,
    no_chance,
    place,
    settings,
)
from tests.support.machines.open_connections import OpenConnections

from ottla.client_core.consumer.commits import Commit, Commits
from ottla.client_core.coordinators import CoordinatorFinder
from ottla.client_core.machine import Channel, Request
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import (
    CommitFailedError,
    GroupAuthorizationError,
    KafkaError,
    NetworkError,
    RetriableCommitFailedError,
    TimeoutError,
)
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, TopicPartition
from ottla.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

SETTINGS: Any = settings()


class Member:
    """A member that remembers which refusals it heard of."""

    group_instance_id = "i"
    member_id = "m"
    free_channel = Channel.GROUP

    def __init__(self, epoch: int, next_epoch: int | None = None, *held: TopicPartition) -> None:
        self.assigned = frozenset(held)
        self.generation_or_epoch = epoch
        self.next_epoch = next_epoch
        self.losses = 0
        self.refused: list[tuple[int, int]] = []

    def commit_refused(self, error: KafkaError, generation_or_epoch: int, now_ms: int) -> None:
        self.refused.append((error.code, generation_or_epoch))
        self.generation_or_epoch = self.next_epoch or self.generation_or_epoch


def machine(*, is_found: bool = True) -> tuple[Commits, CoordinatorFinder]:
    metadata = known_metadata(FakeCluster())
    finder = finder_of(metadata)
    if is_found:
        finder.want()
        find_coordinator(finder)
    return Commits("g", finder, metadata, SETTINGS, no_chance), finder


def start(commits: Commits, offset: int, deadline_ms: int = 60_000, *, is_retried: bool = True) -> Commit:
    return commits.commit({place(0): OffsetAndMetadata(offset)}, deadline_ms, is_retried=is_retried)


def sent(commits: Commits, now_ms: int) -> Request:
    (request,) = commits.step(now_ms)
    return request


def offsets_of(request: Request) -> list[int]:
    message: Any = request.message
    return [data.committed_offset for topic in message.topics for data in topic.partitions]


def answer(*codes: int) -> OffsetCommitResponse:
    data = [OffsetCommitResponsePartition(partition_index=index, error_code=code) for index, code in enumerate(codes)]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name=TOPIC, partitions=data)])


def test_a_second_commit_is_sent_only_after_the_outcome_of_the_first() -> None:
    commits, _ = machine()
    first, second = start(commits, 5), start(commits, 9)
    request = sent(commits, 0)
    assert (offsets_of(request), request.node, request.channel) == ([5], 2, Channel.GROUP)
    assert commits.step(1_000) == []
    commits.answered(request, answer(0), 10, 1_000)
    assert (first.is_done, first.error, second.is_done) == (True, None, False)
    assert offsets_of(sent(commits, 1_000)) == [9]
    assert not commits.is_idle


def test_a_retried_commit_goes_before_later_ones_after_the_backoff() -> None:
    commits, _ = machine()
    first = start(commits, 5)
    commits.answered(sent(commits, 0), answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), 10, 0)
    start(commits, 9)
    assert commits.step(99) == []
    assert commits.next_deadline_ms() == 100
    assert offsets_of(sent(commits, 100)) == [5]
    assert not first.is_done


def test_a_commit_without_retries_fails_with_the_first_error() -> None:
    commits, finder = machine()
    commit = start(commits, 5, is_retried=False)
    commits.failed(sent(commits, 0), NetworkError("the connection was lost"), 0)
    assert isinstance(commit.error, RetriableCommitFailedError)
    assert finder.node() is None
    assert commits.is_idle


def test_a_deadline_that_passes_tells_which_error_was_retried() -> None:
    commits, finder = machine()
    commit = start(commits, 5, deadline_ms=150)
    commits.answered(sent(commits, 0), answer(0, ErrorCode.NOT_COORDINATOR), 10, 0)
    assert finder.node() is None
    assert commits.step(149) == []
    assert (commit.is_done, commits.next_deadline_ms()) == (False, 150)
    assert commits.step(150) == []
    assert isinstance(commit.error, TimeoutError)
    assert "the offset of t-1 was not committed for group g" in str(commit.error)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_member_that_lost_its_partitions_cannot_commit(code: int) -> None:
    commits, _ = machine()
    member = commits.member = Member(7)
    commit = start(commits, 5)
    request = sent(commits, 0)
    message: Any = request.message
    assert (message.generation_id_or_member_epoch, message.member_id, message.group_instance_id) == (7, "m", "i")
    commits.answered(request, answer(code), 10, 0)
    assert isinstance(commit.error, CommitFailedError)
    assert member.refused == [(code, 7)]


OUTDATED = [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS]


@pytest.mark.parametrize("code", OUTDATED)
@pytest.mark.parametrize("next_epoch", [None, 8])
def test_a_commit_during_a_rebalance_is_retried_for_partitions_that_are_still_held(code: int, next_epoch: int | None) -> None:
    commits, _ = machine()
    commits.member = Member(7, next_epoch, place(0), place(1))
    commit = start(commits, 5)
    commits.answered(sent(commits, 0), answer(code), 10, 0)
    assert not commit.is_done
    message: Any = sent(commits, 100).message
    assert message.generation_id_or_member_epoch == (next_epoch or 7)


@pytest.mark.parametrize("code", OUTDATED)
@pytest.mark.parametrize("next_epoch", [None, 8])
def test_an_asynchronous_commit_during_a_rebalance_is_retried_with_a_newer_epoch_only(
    code: int, next_epoch: int | None
) -> None:
    commits, _ = machine()
    commits.member = Member(7, next_epoch, place(0))
    commit = start(commits, 5, is_retried=False)
    commits.answered(sent(commits, 0), answer(code), 10, 0)
    assert commit.is_done is (next_epoch is None)
    assert isinstance(commit.error, RetriableCommitFailedError) is (next_epoch is None)


@pytest.mark.parametrize("code", OUTDATED)
def test_a_commit_for_partitions_that_were_given_up_says_what_to_do(code: int) -> None:
    commits, _ = machine()
    commits.member = Member(7, 8, place(1))
    commit = start(commits, 5)
    commits.answered(sent(commits, 0), answer(code), 10, 0)
    assert isinstance(commit.error, CommitFailedError)
    assert str(commit.error).startswith("the offsets of t-0 were not committed for group g: ")
    assert "Go on with the next poll()" in str(commit.error)


def test_a_commit_takes_the_connection_on_which_nothing_is_parked() -> None:
    commits, _ = machine()
    member = commits.member = Member(7)
    member.free_channel = Channel.HEARTBEAT
    start(commits, 5)
    assert sent(commits, 0).channel == Channel.HEARTBEAT


def test_a_refused_coordinator_ends_the_commit_but_not_the_next_one() -> None:
    commits, finder = machine(is_found=False)
    commit = start(commits, 5)
    commits.step(0)
    find_coordinator(finder, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    commits.step(0)
    assert isinstance(commit.error, GroupAuthorizationError)
    later = start(commits, 6)
    assert commits.step(1) == []
    assert not later.is_done
    find_coordinator(finder, now_ms=1)
    assert offsets_of(sent(commits, 1)) == [6]


def test_a_topic_without_a_known_id_is_committed_by_name() -> None:
    commits, _ = machine()
    commits.commit({TopicPartition("unseen", 3): OffsetAndMetadata(1, "note", 4)}, 60_000, is_retried=True)
    request = sent(commits, 0)
    message: Any = request.message
    (topic,) = message.topics
    assert (topic.name, topic.topic_id, request.version_max) == ("unseen", ZERO_UUID, 9)
    (data,) = topic.partitions
    assert (data.partition_index, data.committed_offset, data.committed_metadata, data.committed_leader_epoch) == (
        3,
        1,
        "note",
        4,
    )
    assert message.generation_id_or_member_epoch == -1


def test_nothing_to_commit_is_done_and_a_given_up_commit_is_not_sent() -> None:
    commits, _ = machine()
    assert commits.commit({}, 0, is_retried=False).is_done
    commits.give_up(start(commits, 5))
    assert commits.step(0) == []
    assert commits.is_idle


def test_commits_fail_while_the_consumer_is_not_in_its_group() -> None:
    commits, finder = machine()
    connections = finder.connections = OpenConnections()
    member = commits.member = Member(4)
    first, second = start(commits, 10), start(commits, 11, is_retried=False)
    assert commits.step(0) == [], "the coordinator is not connected"
    member.generation_or_epoch = -1
    coordinator = finder.node()
    assert coordinator is not None
    connections.open.add((coordinator, Channel.GROUP))
    assert commits.step(1) == []
    assert isinstance(first.error, CommitFailedError)
    assert isinstance(second.error, CommitFailedError)
    commits.member = None
    third = start(commits, 12)
    assert offsets_of(sent(commits, 2)) == [12], "a consumer without a subscription commits from outside"
    assert third.error is None


def test_a_commit_is_not_repeated_in_a_later_membership() -> None:
    """Another member may own the partitions since, and have committed more."""
    commits, finder = machine()
    commits.member = member = Member(5)
    commit, waiting = start(commits, 7), start(commits, 8)
    request = sent(commits, 0)
    member.losses, member.generation_or_epoch = 1, 9  # it was evicted, and has joined again, while there was no answer
    commits.failed(request, NetworkError("gone"), 30_000)
    find_coordinator(finder)
    assert commits.step(40_000) == []
    for each in (commit, waiting):
        assert isinstance(each.error, CommitFailedError)
        assert "joined again" in str(each.error)
    start(commits, 1)
    assert offsets_of(sent(commits, 40_000)) == [1]


def test_a_commit_that_nobody_waits_for_is_not_repeated() -> None:
    commits, finder = machine()
    commit = start(commits, 7)
    request = sent(commits, 0)
    commits.give_up(commit)
    commits.failed(request, NetworkError("gone"), 1_000)
    find_coordinator(finder)
    assert commit.is_done
    assert commits.step(10_000) == []
