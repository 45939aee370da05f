"""The records of decisions on settings. Their error codes: tests/unit/broker/handlers/admin/test_alter_configs.py."""

from collections.abc import Mapping

import pytest
from tests.support.cases.config_cases import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    INVALID_CONFIG,
    INVALID_REQUEST,
    NONE,
    SET,
    TOPIC,
    Case,
    incremental_request,
    legacy_request,
)
from tests.support.nodes.config_node import ConfigNode
from tests.support.nodes.controller_cluster import ControllerCluster

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.configs import alter_configs, incremental_alter_configs
from ottla.metadata.controller.state import ControllerState
from ottla.wire.messages.metadata_records import ClearElrRecord, ConfigRecord, FeatureLevelRecord


def state(static: Mapping[str, str] | None = None) -> ControllerState:
    """The state of a cluster of one broker with topics `t` and `u`, ELR on, and only the settings that ELR needs."""
    return ConfigNode(static).state


def decide(
    controller: ControllerState, *cases: Case, validate_only: bool = False
) -> tuple[list[int], list[tuple[object, ...]]]:
    """The codes of an incremental change, and its records as plain values."""
    decision = incremental_alter_configs(controller, incremental_request(*cases, validate_only=validate_only), 0)
    codes = [NONE if error is None else error.code for error in decision.response.values()]
    return codes, [_plain(record) for record in decision.records]


def _plain(record: object) -> tuple[object, ...]:
    if isinstance(record, ConfigRecord):
        return record.resource_type, record.resource_name, record.name, record.value
    assert isinstance(record, ClearElrRecord)
    return "clear", record.topic_name


def take(controller: ControllerState, *cases: Case) -> None:
    decision = incremental_alter_configs(controller, incremental_request(*cases, validate_only=False), 0)
    controller.replay(decision.records, controller.next_offset, 1, 0)


def test_an_incremental_change_writes_only_what_differs() -> None:
    changes = [("retention.ms", SET, "5"), ("segment.ms", DELETE, None), ("cleanup.policy", APPEND, "compact")]
    assert decide(state(), Case(NONE, TOPIC, "t", changes)) == (
        [NONE],
        [(TOPIC, "t", "retention.ms", "5"), (TOPIC, "t", "cleanup.policy", "delete,compact")],
    )


def test_a_refused_resource_writes_nothing_and_the_others_do() -> None:
    good, bad = Case(NONE, TOPIC, "t", [("retention.ms", SET, "5")]), Case(NONE, TOPIC, "u", [("retention.ms", SET, "x")])
    assert decide(state(), bad, good) == ([INVALID_CONFIG, NONE], [(TOPIC, "t", "retention.ms", "5")])
    assert decide(state(), bad, good, validate_only=True) == ([INVALID_CONFIG, NONE], [])


def test_a_changed_min_isr_clears_eligible_leader_replicas() -> None:
    controller = state()
    topic, brokers = (
        Case(NONE, TOPIC, "t", [("min.insync.replicas", SET, "2")]),
        Case(NONE, BROKER, "", [("min.insync.replicas", SET, "3")]),
    )
    assert decide(controller, topic, brokers)[1][2:] == [("clear", "t"), ("clear", "")]
    controller.replay([FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0)], 100, 1, 0)
    assert decide(controller, topic, brokers)[1] == [
        (TOPIC, "t", "min.insync.replicas", "2"),
        (BROKER, "", "min.insync.replicas", "3"),
    ]
    assert decide(controller, Case(NONE, BROKER, "1", [("min.insync.replicas", SET, "2")]))[0] == [NONE]
    assert decide(controller, Case(NONE, BROKER, "", [("min.insync.replicas", DELETE, None)]))[0] == [NONE]


def without_leaders(count: int = 1) -> ControllerCluster:
    """Topics t and u on brokers that are all away; the replicas 2 and 3 of each partition are eligible, 3 led last."""
    cluster = ControllerCluster()
    for broker_id in (1, 2, 3):
        cluster.add_broker(broker_id)
    for name in ("t", "u"):
        cluster.create_topic(name, assignments=[[1, 2, 3]] * count, configs={"min.insync.replicas": "2"})
    for broker_id in (1, 2, 3):
        cluster.heartbeat(broker_id, want_fence=True)
    return cluster


def set_min_isr(cluster: ControllerCluster, type_: int, name: str, value: str) -> None:
    request = incremental_request(Case(NONE, type_, name, [("min.insync.replicas", SET, value)]), validate_only=False)
    assert cluster.apply(incremental_alter_configs(cluster.state, request, 0)) == {(type_, name): None}


@pytest.mark.parametrize(("type_", "name"), [(TOPIC, "t"), (BROKER, "")])
def test_a_changed_min_isr_leaves_partitions_without_a_leader_eligible_replicas(type_: int, name: str) -> None:
    cluster = without_leaders()
    set_min_isr(cluster, type_, name, "3")
    assert [(cluster.partition(each).elr, cluster.partition(each).last_known_elr) for each in "tu"] == [((2, 3), (3,))] * 2
    cluster.heartbeat(2)
    assert (cluster.partition("t").leader, cluster.partition("t").elr) == (2, (3,))


def test_one_replica_stays_eligible_if_it_may_commit_alone() -> None:
    cluster = without_leaders()
    set_min_isr(cluster, TOPIC, "t", "1")
    assert cluster.partition("t").elr == (3,), "the last known leader"
    cluster.heartbeat(2)
    assert cluster.partition("t").leader == -1, "with 3 and 2 eligible, 3 would be after 2 has committed alone"
    cluster.heartbeat(3)
    assert (cluster.partition("t").leader, cluster.partition("t").isr, cluster.partition("t").elr) == (3, (3,), ())


def test_partitions_with_a_leader_lose_their_eligible_replicas_with_the_old_min_isr() -> None:
    cluster = without_leaders()
    cluster.heartbeat(2)
    set_min_isr(cluster, TOPIC, "t", "1")
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((2,), ())


def test_what_stays_eligible_does_not_count_as_records_of_the_request() -> None:
    cluster = without_leaders(5_001)
    set_min_isr(cluster, BROKER, "", "3")
    assert all(partition.elr == (2, 3) for name in "tu" for partition in cluster.topic(name).partitions.values())


def test_a_list_longer_than_a_value_may_be_is_refused() -> None:
    controller = state()
    pairs = [",".join(f"{partition}:1" for partition in range(start, start + 3000)) for start in (0, 10_000, 20_000)]
    name = "leader.replication.throttled.replicas"
    take(controller, Case(NONE, TOPIC, "t", [(name, APPEND, pairs[0])]))
    assert decide(controller, Case(NONE, TOPIC, "t", [(name, APPEND, pairs[1])])) == ([INVALID_CONFIG], [])


def test_settings_of_unregistered_brokers_are_refused() -> None:
    case = Case(NONE, BROKER, "9", [("max.connections", SET, "5")])
    assert decide(state(), case)[0] == [ErrorCode.BROKER_ID_NOT_REGISTERED]
    assert decide(state(), Case(NONE, BROKER, "-1", []))[0] == [INVALID_REQUEST]


def test_a_topics_compaction_lag_is_checked_against_the_brokers() -> None:
    controller = state()
    case = Case(NONE, TOPIC, "t", [("min.compaction.lag.ms", SET, "1000")])
    assert decide(controller, case)[0] == [NONE]
    take(controller, Case(NONE, BROKER, "", [("log.cleaner.max.compaction.lag.ms", SET, "500")]))
    assert decide(controller, case)[0] == [INVALID_CONFIG]


@pytest.mark.parametrize(("most", "code"), [("55000", NONE), ("46000", INVALID_CONFIG)])
def test_a_groups_session_timeout_is_checked_against_the_brokers(most: str, code: int) -> None:
    controller = state({"group.consumer.max.session.timeout.ms": most})
    assert decide(controller, Case(NONE, GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]))[0] == [code]


def test_a_heartbeat_interval_as_long_as_a_session_is_refused() -> None:
    controller = state({"group.consumer.min.session.timeout.ms": "1000"})
    changes = [("consumer.session.timeout.ms", SET, "5000"), ("consumer.heartbeat.interval.ms", SET, "5000")]
    assert decide(controller, Case(NONE, GROUP, "g", changes))[0] == [INVALID_CONFIG]


def test_alter_configs_removes_what_it_does_not_name() -> None:
    controller = state()
    take(controller, Case(NONE, TOPIC, "t", [("retention.ms", SET, "5"), ("segment.ms", SET, "6")]))
    decision = alter_configs(
        controller,
        legacy_request(Case(NONE, TOPIC, "t", [("segment.ms", SET, "6"), ("flush.ms", SET, "7")]), validate_only=False),
        0,
    )
    assert [_plain(record) for record in decision.records] == [
        (TOPIC, "t", "flush.ms", "7"),
        (TOPIC, "t", "retention.ms", None),
    ]


def test_a_request_past_the_record_limit_is_refused_as_a_whole() -> None:
    groups = [Case(NONE, GROUP, f"g{n}", [("consumer.session.timeout.ms", SET, "50000")]) for n in range(10_001)]
    with pytest.raises(KafkaError, match="split it") as refused:
        decide(state(), *groups)
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
