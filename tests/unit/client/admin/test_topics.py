"""Creating and deleting topics, and adding partitions."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode, all_versions

from ottla.client.admin.topics import NewPartitions, NewTopic
from ottla.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    TopicExistsError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from ottla.ids import Uuid
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse


def test_topics_are_created_and_deleted_by_name_and_id(
    admin: Any, name: str, create: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    created = create({f"{name}-a": 3, f"{name}-b": 1})
    assert (created[f"{name}-a"].partitions, created[f"{name}-a"].replication_factor) == (3, 1)
    assert len(created[f"{name}-b"].id) == 16
    assert created[f"{name}-a"].configs["cleanup.policy"] == "delete"
    listed = admin.list_topics()
    assert listed[f"{name}-a"].id == created[f"{name}-a"].id
    wanted = [f"{name}-a", created[f"{name}-b"].id]
    assert list(admin.delete_topics(wanted).raise_first()) == wanted
    eventually(lambda: {f"{name}-a", f"{name}-b"} & set(admin.list_topics()), set())


def test_each_item_has_its_own_result(admin: Any, name: str, create: Callable[..., Any]) -> None:
    create({name: 1})
    results = admin.create_topics([name, NewTopic(f"{name}-new", 2), NewTopic(f"{name}-bad", configs={"retention.ms": "soon"})])
    assert results[f"{name}-new"].partitions == 2
    with pytest.raises(TopicExistsError, match=f"topic {name} was not created: .*TOPIC_ALREADY_EXISTS"):
        results[name]
    assert isinstance(results.errors[f"{name}-bad"], InvalidConfigurationError)
    deleted = admin.delete_topics([name, "missing-topic", Uuid(b"no-such-topic-id")])
    assert deleted[name] is None
    assert isinstance(deleted.errors["missing-topic"], UnknownTopicOrPartitionError)
    assert isinstance(deleted.errors[Uuid(b"no-such-topic-id")], UnknownTopicIdError)


def test_full_form_places_replicas_and_sets_configs(admin: Any, name: str, create: Callable[..., Any]) -> None:
    topic = NewTopic(name, replicas={0: [1], 1: [1]}, configs={"retention.ms": 1000, "cleanup.policy": ["compact", "delete"]})
    created = create([topic])[name]
    assert created.partitions == 2
    assert created.configs["retention.ms"] == "1000"
    assert created.configs["cleanup.policy"] == "compact,delete"


def test_validate_only_changes_nothing(admin: Any, name: str, create: Callable[..., Any]) -> None:
    assert admin.create_topics({name: 2}, validate_only=True).raise_first()[name].partitions == 2
    assert name not in admin.list_topics()
    create({name: 2})
    admin.create_partitions({name: 5}, validate_only=True).raise_first()
    assert len(admin.describe_topics([name])[name].partitions) == 2


def test_partitions_are_added(admin: Any, name: str, create: Callable[..., Any], eventually: Callable[..., None]) -> None:
    create({name: 1, f"{name}-b": 1})
    results = admin.create_partitions({name: 3, f"{name}-b": NewPartitions(2, [[1]]), "missing-topic": 2})
    assert results[name] is None
    assert results[f"{name}-b"] is None
    assert isinstance(results.errors["missing-topic"], UnknownTopicOrPartitionError)
    eventually(lambda: len(admin.describe_topics([name])[name].partitions), 3)
    assert isinstance(admin.create_partitions({name: 2}).errors[name], InvalidPartitionsError)


def test_nothing_to_do_sends_nothing(scripted: Any, node: FakeNode) -> None:
    assert len(scripted.create_topics({})) == len(scripted.delete_topics([])) == len(scripted.create_partitions({})) == 0
    assert node.asked == []


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda admin: admin.create_topics({"a b": 1}), ValueError, "topics: .*'a b'"),
        (lambda admin: admin.create_topics({"a": 0}), ValueError, r"topics\['a'\] is 0"),
        (lambda admin: admin.create_topics("orders"), TypeError, "topics must be a list"),
        (lambda admin: admin.create_topics(["a", "a"]), ValueError, "topics: a is in the list twice"),
        (lambda admin: admin.create_topics([NewTopic("a", 1, replicas=[[1]])]), ValueError, "topics: a has replicas"),
        (lambda admin: admin.create_topics([7]), TypeError, "topics: a topic to create is a name"),
        (lambda admin: admin.delete_topics("orders"), TypeError, "topics must be a list"),
        (lambda admin: admin.delete_topics([b"id"]), ValueError, "topics: a topic id is 16 bytes"),
        (lambda admin: admin.create_partitions(["a"]), TypeError, "topics must be a mapping"),
        (lambda admin: admin.create_partitions({"a": 0}), ValueError, r"topics\['a'\] is 0"),
    ],
)
def test_bad_argument_is_named_and_nothing_is_sent(
    scripted: Any, node: FakeNode, call: Callable[[Any], Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        call(scripted)
    assert node.asked == []


def test_items_that_the_controller_did_not_take_up_are_asked_about_again(scripted: Any, node: FakeNode) -> None:
    answers = [{"a": 0, "b": 89, "c": 41}, {"b": 36, "c": 0}]

    def create(request: CreateTopicsRequest, version: int) -> CreateTopicsResponse:
        codes = answers[len(node.asked_for(CreateTopicsRequest)) - 1]
        assert [each.name for each in request.topics] == list(codes)
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=each, error_code=code) for each, code in codes.items()])

    node.handlers[CreateTopicsRequest] = create
    results = scripted.create_topics(["a", "b", "c"])
    assert results["a"].name == "a"
    assert results["c"].name == "c"
    assert isinstance(results.errors["b"], TopicExistsError)


def test_item_that_is_missing_in_the_response_gets_an_error(scripted: Any, node: FakeNode) -> None:
    node.handlers[CreateTopicsRequest] = lambda request, version: CreateTopicsResponse()
    assert isinstance(scripted.create_topics(["a"]).errors["a"], UnknownServerError)


def test_older_broker_deletes_by_name_only(scripted: Any, node: FakeNode) -> None:
    node.served = all_versions(DeleteTopics=(1, 5))
    node.handlers[DeleteTopicsRequest] = lambda request, version: DeleteTopicsResponse(
        responses=[DeletableTopicResult(name=name) for name in request.topic_names]
    )
    assert scripted.delete_topics(["a"]).raise_first()["a"] is None
    with pytest.raises(UnsupportedVersionError):
        scripted.delete_topics([Uuid(b"sixteen-byte-id!")])
