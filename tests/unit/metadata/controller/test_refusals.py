"""Our decisions answer with the codes that Apache Kafka answers with; tests/compat holds the codes to a real broker."""

from importlib import import_module
from typing import Any

import pytest
from tests.support.cases.controller_refusals import CASES, CODES, PREPARED, Case, codes_of
from tests.support.nodes.controller_cluster import ControllerCluster
from tests.support.nodes.images import context_of

from ottla.broker.requests.apis import ON_BROKER
from ottla.errors import KafkaError
from ottla.ids import Uuid
from ottla.metadata.controller.decision import Asker, Decision
from ottla.metadata.controller.elections import elect_leaders
from ottla.metadata.controller.features import update_features
from ottla.metadata.controller.topics import create_partitions, create_topics, delete_topics
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message

DECISIONS: dict[int, Any] = {
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.ELECT_LEADERS: elect_leaders,
    ApiKey.UPDATE_FEATURES: update_features,
}
WITH_VERSION = (ApiKey.DELETE_TOPICS, ApiKey.UPDATE_FEATURES)


def answer(cluster: ControllerCluster, request: Message, version: int) -> Message:
    """The decision's response; for a request that is refused as a whole, the handler's."""
    more = (Asker(version),) if request.KEY in WITH_VERSION else ()
    try:
        decision: Decision[Message] = DECISIONS[request.KEY](cluster.state, request, 0, *more)
    except KafkaError as error:
        handler = import_module(f"ottla.broker.handlers.{ON_BROKER[request.KEY]}")
        refused: Message = handler.refuse(context_of(cluster.state.image, request.KEY, version), request, error)
        return refused
    return cluster.apply(decision)


def prepared() -> ControllerCluster:
    cluster = ControllerCluster()
    cluster.add_broker(1)
    for name, partitions in PREPARED.items():
        cluster.create_topic(name, partitions, 1)
    return cluster


def test_every_case_is_answered_as_by_apache() -> None:
    cluster = prepared()
    ids = {name: cluster.topic(name).id for name in PREPARED}
    names: dict[Uuid, str] = {topic_id: name for name, topic_id in ids.items()}
    wrong = {}
    for case in CASES:
        before = cluster.state.image
        codes = codes_of(answer(cluster, case.make(ids), case.version), names)
        if codes != CODES[case.name]:
            wrong[case.name] = (codes, CODES[case.name])
        if not any(code == 0 for code in codes.values()):
            assert cluster.state.image is before, f"{case.name}: refused, and yet something was written"
    assert not wrong, "ours, Apache's"


def test_the_codes_are_those_of_the_cases() -> None:
    assert list(CODES) == [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_refusal_says_why(case: Case) -> None:
    cluster = prepared()
    ids = {name: cluster.topic(name).id for name in PREPARED}
    response: Any = answer(cluster, case.make(ids), case.version)
    for text in _error_messages(response):
        assert text is not None
        assert len(text) > 20


def _error_messages(response: Any) -> list[str | None]:
    """The message of every part of the response that has an error code other than 0, if the schema has a message."""
    found = []
    if getattr(response, "error_code", 0) and hasattr(response, "error_message"):
        found.append(response.error_message)
    for field in ("topics", "responses", "results", "replica_election_results", "partition_result"):
        for each in getattr(response, field, ()) or ():
            found += _error_messages(each)
    return found
