"""The table of decisions by API."""

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster

from ottla.broker.requests.apis import ON_CONTROLLER
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.apis import DECISIONS, decision_of
from ottla.metadata.controller.decision import Asker
from ottla.wire.api_table import ApiKey
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest


def test_every_decision_is_there_and_served_on_a_controllers_listener() -> None:
    for api_key in DECISIONS:
        assert callable(decision_of(api_key))
        assert decision_of(api_key) is decision_of(api_key)
    assert DECISIONS.keys() <= ON_CONTROLLER.keys()


def test_request_is_decided_by_its_key() -> None:
    cluster = ControllerCluster()
    cluster.add_broker(1)
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
    response = cluster.apply(decision_of(request.KEY)(cluster.state, request, 0, Asker(7)))
    assert [topic.name for topic in response.topics] == ["t"]
    assert "t" in cluster.state.image.topics.by_name


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_version_of_the_request_counts_where_the_response_depends_on_it(version: int, code: int) -> None:
    cluster = ControllerCluster(delete_topic_enable=False)
    with pytest.raises(KafkaError) as refused:
        decision_of(ApiKey.DELETE_TOPICS)(cluster.state, DeleteTopicsRequest(topic_names=["t"]), 0, Asker(version))
    assert refused.value.code == code
