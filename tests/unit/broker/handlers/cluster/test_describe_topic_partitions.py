"""DescribeTopicPartitions: pages, cursors, unknown topics."""

from types import SimpleNamespace

import pytest
from tests.support.nodes.images import broker, context_of, image_of, partition

from ottla.broker.handlers.cluster.describe_topic_partitions import handle
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.api_table import ApiKey
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)

IMAGE = image_of([broker(1)], {"c": [partition(1)] * 3, "a": [partition(1)] * 2, "b": [partition(1)]})


def ask(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    settings = SimpleNamespace(current=SimpleNamespace(max_request_partition_size_limit=2000))
    return handle(context_of(IMAGE, ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, settings=settings), request)


def told(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(topic.name, [each.partition_index for each in topic.partitions]) for topic in response.topics]


def test_all_topics_come_in_order() -> None:
    assert told(ask()) == [("a", [0, 1]), ("b", [0]), ("c", [0, 1, 2])]
    assert ask().next_cursor is None


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7])
def test_pages_together_are_everything(limit: int) -> None:
    seen: list[tuple[str | None, int]] = []
    cursor: tuple[str, int] | None = None
    for _ in range(10):
        page = ask(limit=limit, cursor=cursor)
        seen += [(name, index) for name, indexes in told(page) for index in indexes]
        assert sum(len(indexes) for _, indexes in told(page)) <= limit
        if page.next_cursor is None:
            break
        cursor = page.next_cursor.topic_name, page.next_cursor.partition_index
    assert seen == [("a", 0), ("a", 1), ("b", 0), ("c", 0), ("c", 1), ("c", 2)]


def test_a_limit_below_one_is_one() -> None:
    assert told(ask("a", limit=0)) == [("a", [0])]


def test_cursor_at_a_deleted_topic_continues_with_the_next() -> None:
    assert told(ask(cursor=("aa", 7))) == [("b", [0]), ("c", [0, 1, 2])]


def test_unknown_and_invalid_topics_get_an_error_code() -> None:
    response = ask("a", "missing", "not valid")
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("a", ErrorCode.NONE),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("not valid", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


def test_a_cursor_before_the_first_partition_is_refused() -> None:
    with pytest.raises(KafkaError) as refused:
        ask(cursor=("a", -1))
    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_a_cursor_at_a_topic_that_is_not_asked_for_is_refused() -> None:
    """If the request names topics it is an error; if it asks for all, the topic may have been deleted since the last page."""
    with pytest.raises(KafkaError, match="which the request does not name") as refused:
        ask("a", "c", cursor=("b", 0))
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    assert told(ask("a", "c", cursor=("c", 1))) == [("c", [1, 2])]
