"""Queries for committed offsets: what they find, in every shape of answer, and what they retry."""

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

from ottla.client_core.consumer.commits import CommittedOffsets
from ottla.client_core.coordinators import CoordinatorFinder
from ottla.client_core.machine import Channel, Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import GroupAuthorizationError, NetworkError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

SETTINGS: Any = settings()
CLUSTER = FakeCluster()


class Member:
    group_instance_id = None
    member_id = "m"
    generation_or_epoch = 7
    losses = 0

    def commit_refused(self, *_: Any) -> None: ...


def machine(*, is_found: bool = True) -> tuple[CommittedOffsets, CoordinatorFinder, Metadata]:
    metadata = known_metadata(CLUSTER)
    finder = finder_of(metadata)
    if is_found:
        finder.want()
        find_coordinator(finder)
    return CommittedOffsets("g", finder, metadata, SETTINGS, no_chance), finder, metadata


def sent(committed: CommittedOffsets, now_ms: int = 0) -> Request:
    (request,) = committed.step(now_ms)
    return request


def message_of(request: Request, version: int) -> Any:
    assert request.adapt is not None
    return request.adapt(version)


def answer(version: int, code: int = 0, data_code: int = 0) -> OffsetFetchResponse:
    """Partition 0 is at offset 5, and nothing was committed for partition 1."""
    if version < 8:
        old = [
            OffsetFetchResponsePartition(committed_offset=5, metadata="note", committed_leader_epoch=3, error_code=data_code),
            OffsetFetchResponsePartition(partition_index=1, committed_offset=-1),
        ]
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name=TOPIC, partitions=old)], error_code=code)
    data = [
        OffsetFetchResponsePartitions(committed_offset=5, metadata="note", committed_leader_epoch=3, error_code=data_code),
        OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
    ]
    topic = OffsetFetchResponseTopics(partitions=data)
    if version < 10:
        topic.name = TOPIC
    else:
        topic.topic_id = CLUSTER.topic_id
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=[topic], error_code=code)])


@pytest.mark.parametrize("version", [7, 9, 10])
def test_every_version_of_the_answer_gives_the_same_offsets(version: int) -> None:
    committed, _, _ = machine()
    query = committed.ask([place(0), place(1)])
    request = sent(committed)
    assert (request.node, request.channel) == (2, Channel.GROUP)
    assert message_of(request, version).require_stable
    committed.answered(request, answer(version), version, 0)
    assert (query.is_done, query.error) == (True, None)
    assert query.found == {place(0): OffsetAndMetadata(5, "note", 3), place(1): None}
    assert committed.step(1_000) == []


def test_an_offset_is_found_although_the_metadata_lost_the_topic() -> None:
    committed, _, metadata = machine()
    query = committed.ask([place(0)])
    request = sent(committed)
    metadata.unwant([TOPIC])
    committed.answered(request, answer(10), 10, 0)
    assert query.found == {place(0): OffsetAndMetadata(5, "note", 3)}


@pytest.mark.parametrize(
    ("code", "data_code"),
    [(0, ErrorCode.UNSTABLE_OFFSET_COMMIT), (ErrorCode.STALE_MEMBER_EPOCH, 0), (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 0)],
)
def test_errors_that_pass_are_retried_after_the_backoff(code: int, data_code: int) -> None:
    committed, finder, _ = machine()
    query = committed.ask([place(0), place(1)])
    committed.answered(sent(committed), answer(10, code, data_code), 10, 0)
    assert not query.is_done
    assert query.retried is not None
    assert committed.step(99) == []
    assert committed.next_deadline_ms() == 100
    assert finder.node() == 2
    committed.answered(sent(committed, 100), answer(10), 10, 100)
    assert query.is_done


def test_a_moved_coordinator_is_looked_for_again() -> None:
    committed, finder, _ = machine()
    query = committed.ask([place(0)])
    committed.answered(sent(committed), answer(10, ErrorCode.NOT_COORDINATOR), 10, 0)
    assert finder.node() is None
    assert committed.step(500) == []
    find_coordinator(finder, now_ms=500)
    committed.failed(sent(committed, 500), NetworkError("the connection was lost"), 500)
    assert finder.node() is None
    assert not query.is_done
    committed.step(1_000)
    find_coordinator(finder, now_ms=1_000)
    assert sent(committed, 1_000).context[0] is query


def test_a_topic_that_the_coordinator_does_not_know_refreshes_the_metadata() -> None:
    committed, _, metadata = machine()
    committed.ask([place(0)])
    request = sent(committed)
    assert metadata.step(1_000) == []
    committed.answered(request, answer(10, data_code=ErrorCode.UNKNOWN_TOPIC_ID), 10, 1_000)
    assert metadata.step(1_000)


def test_an_error_that_no_retry_mends_ends_the_query() -> None:
    committed, _, _ = machine()
    query = committed.ask([place(0)])
    committed.answered(sent(committed), answer(10, ErrorCode.GROUP_AUTHORIZATION_FAILED), 10, 0)
    assert isinstance(query.error, GroupAuthorizationError)
    assert "group g" in str(query.error)
    assert committed.step(1_000) == []


def test_a_refused_coordinator_ends_the_query_but_not_the_next_one() -> None:
    committed, finder, _ = machine(is_found=False)
    query = committed.ask([place(0)])
    committed.step(0)
    find_coordinator(finder, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    committed.step(0)
    assert isinstance(query.error, GroupAuthorizationError)
    later = committed.ask([place(0)])
    assert committed.step(1) == []
    assert not later.is_done
    find_coordinator(finder, now_ms=1)
    assert sent(committed, 1).context[0] is later


def test_a_member_sends_its_epoch_and_an_unknown_topic_goes_by_name() -> None:
    committed, _, _ = machine()
    committed.member = Member()
    committed.ask([TopicPartition("unseen", 3)])
    request = sent(committed)
    assert request.version_max == 9
    (group,) = message_of(request, 9).groups
    assert (group.member_id, group.member_epoch) == ("m", 7)
    assert [(topic.name, topic.partition_indexes) for topic in group.topics] == [("unseen", [3])]


def test_a_dropped_query_is_not_sent_and_an_empty_one_is_done() -> None:
    committed, _, _ = machine()
    committed.drop(committed.ask([place(0)]))
    assert committed.step(0) == []
    assert committed.ask([]).is_done
