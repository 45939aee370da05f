"""Errors as a person reads them: the command that helps stands at the end, once."""

from ottla.cli.common.explanations import explain
from ottla.errors import (
    NetworkError,
    OttlaError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
    UnreachableError,
    exception_of,
)
from ottla.errors.codes import ErrorCode


def test_missing_topic_comes_with_the_command_that_lists_topics() -> None:
    text = explain(UnknownTopicOrPartitionError("topic absent does not exist"))
    assert text == ("topic absent does not exist (UNKNOWN_TOPIC_OR_PARTITION): `ottla topics list` shows the topics there are")


def test_partition_without_a_leader_comes_with_the_command_that_says_why() -> None:
    error = exception_of(ErrorCode.LEADER_NOT_AVAILABLE, "orders-1 has no leader now")
    hint = "`ottla topics describe --check` says why and what to do"
    assert explain(error) == f"orders-1 has no leader now (LEADER_NOT_AVAILABLE): {hint}"


def test_hint_to_start_a_node_only_where_nothing_answers() -> None:
    assert "`ottla up`" in explain(UnreachableError("no broker can be reached", is_absent=True))
    assert "`ottla up`" not in explain(UnreachableError("a web server answers"))


def test_error_of_a_broker_is_named_and_one_of_the_client_is_not() -> None:
    assert explain(OttlaError("broken")) == "broken"
    assert explain(TopicExistsError("topic a exists")) == "topic a exists (TOPIC_ALREADY_EXISTS)"
    assert explain(NetworkError("the connection was closed")) == "the connection was closed"
