"""Options of the sink."""

from __future__ import annotations

import pytest

import ottla
from ottla.spark.errors import SparkOptionError
from ottla.spark.sink.options import DECISIONS_TOPIC, TwoPhase, sink_options

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_at_least_once_is_the_default() -> None:
    found = sink_options({**SERVERS, "topic": "orders", "kafka.linger.ms": "5"}, is_streaming=True)
    assert (found.topic, found.is_exactly_once) == ("orders", False)
    assert found.client == {"bootstrap.servers": "localhost:9092", "linger.ms": "5"}


def test_exactly_once_has_a_long_timeout_and_a_decisions_topic() -> None:
    found = sink_options({**SERVERS, "exactlyOnce": "true", "checkpointLocation": "/c"}, is_streaming=True)
    assert found.is_exactly_once
    assert found.client["transaction.timeout.ms"] == "900000"
    assert "transaction.timeout.ms" not in found.client_without_transactions
    assert (found.decisions_topic, found.checkpoint) == (DECISIONS_TOPIC, "/c")
    own = sink_options(
        {**SERVERS, "exactlyOnce": "true", "decisionsTopic": "mine", "kafka.transaction.timeout.ms": "60000"}, is_streaming=True
    )
    assert (own.decisions_topic, own.client["transaction.timeout.ms"]) == ("mine", "60000")


def test_tasks_have_no_timeout_only_if_two_phase_commit_is_asked_for() -> None:
    found = {
        given: sink_options({**SERVERS, "exactlyOnce": "true", **more}, is_streaming=True)
        for given, more in (("", {}), *((each, {"twoPhaseCommit": each}) for each in ("auto", "true", "false")))
    }
    assert {given: each.two_phase for given, each in found.items()} == {
        "": TwoPhase.AUTO,
        "auto": TwoPhase.AUTO,
        "true": TwoPhase.TRUE,
        "false": TwoPhase.FALSE,
    }
    assert all(found[each].task_client == {**found[each].client, "linger.ms": "200"} for each in ("auto", "false"))
    assert "transaction.timeout.ms" not in found["true"].task_client
    assert found["true"].task_client["transaction.two.phase.commit.enable"] == "true"


def test_only_the_producers_of_tasks_linger_and_not_where_the_user_says_how_long() -> None:
    found = sink_options(SERVERS, is_streaming=False)
    assert (found.client.get("linger.ms"), found.task_client["linger.ms"]) == (None, "200")
    assert sink_options({**SERVERS, "kafka.linger.ms": "5"}, is_streaming=False).task_client["linger.ms"] == "5"
    short = sink_options({**SERVERS, "kafka.delivery.timeout.ms": "30005"}, is_streaming=False)
    assert "linger.ms" not in short.task_client
    with ottla.Producer(config=short.task_client):
        pass  # 200 would be refused: a record must not expire before one request could fail


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "kafka.bootstrap.servers is missing"),
        ({**SERVERS, "kafka.value.serializer": "x"}, "kafka.value.serializer cannot be set"),
        ({**SERVERS, "kafka.transactional.id": "x"}, "the sink makes its own; use the option exactlyOnce"),
        ({**SERVERS, "exactlyonce": "yes"}, "exactlyOnce is 'yes': it must be true or false"),
        ({**SERVERS, "exactly_once": "true"}, "exactly_once is no option of the ottla sink; did you mean exactlyOnce"),
        ({**SERVERS, "decisionsTopic": "x"}, "decisionsTopic is only used with exactlyOnce=true"),
        ({**SERVERS, "twoPhaseCommit": "auto"}, "twoPhaseCommit is only used with exactlyOnce=true"),
        (
            {**SERVERS, "exactlyOnce": "true", "twoPhaseCommit": "yes"},
            "twoPhaseCommit is 'yes': it must be auto, true or false",
        ),
        ({**SERVERS, "kafka.transaction.two.phase.commit.enable": "true"}, "use the option twoPhaseCommit"),
        (
            {**SERVERS, "exactlyOnce": "true", "twoPhaseCommit": "true", "kafka.transaction.timeout.ms": "1000"},
            "kafka.transaction.timeout.ms cannot be used with twoPhaseCommit=true",
        ),
        ({**SERVERS, "exactlyOnce": "true", "kafka.acks": "1"}, "kafka.acks=1 cannot be used with exactlyOnce=true"),
        ({**SERVERS, "exactlyOnce": "true", "kafka.enable.idempotence": "false"}, "kafka.enable.idempotence=false cannot"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, str], expected: str) -> None:
    with pytest.raises(SparkOptionError, match=expected):
        sink_options(given, is_streaming=True)
