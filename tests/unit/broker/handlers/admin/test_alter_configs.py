"""Changing settings: the codes that Apache Kafka answers, what is written, and what takes effect."""

import logging

import pytest
from tests.support.cases.config_cases import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    INCREMENTAL,
    INVALID_REQUEST,
    LEGACY,
    NONE,
    SET,
    STRICTER,
    SUBTRACT,
    TOPIC,
    UNKNOWN_TOPIC,
    Case,
    incremental_request,
    legacy_request,
)
from tests.support.nodes.config_node import ConfigNode

from ottla.broker.handlers.admin import alter_configs, incremental_alter_configs
from ottla.broker.loggers import PythonLoggers, find_logger
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.metadata_records import ConfigRecord


def change(node: ConfigNode, *cases: Case, validate_only: bool = False) -> list[int]:
    """The error codes of an IncrementalAlterConfigs request."""
    response = node.ask(incremental_request(*cases, validate_only=validate_only))
    return [entry.error_code for entry in response.responses]


def replace(node: ConfigNode, *cases: Case, validate_only: bool = False) -> list[int]:
    """The error codes of an AlterConfigs request."""
    return [entry.error_code for entry in node.ask(legacy_request(*cases, validate_only=validate_only)).responses]


@pytest.fixture(scope="module")
def untouched() -> ConfigNode:
    return ConfigNode()


@pytest.mark.parametrize("case", INCREMENTAL + STRICTER, ids=str)
def test_incremental_changes_are_answered_as_by_apache(untouched: ConfigNode, case: Case) -> None:
    (entry,) = untouched.ask(incremental_request(case)).responses
    assert entry.error_code == case.code, entry.error_message
    assert (entry.error_message is None) == (case.code == NONE)
    assert (entry.resource_type, entry.resource_name) == (case.type, case.name)
    assert untouched.written == []


@pytest.mark.parametrize("case", LEGACY, ids=str)
def test_alter_configs_is_answered_as_by_apache(untouched: ConfigNode, case: Case) -> None:
    (entry,) = untouched.ask(legacy_request(case)).responses
    assert entry.error_code == case.code, entry.error_message
    assert (entry.error_message is None) == (case.code == NONE)
    assert untouched.written == []


def test_a_topics_setting_takes_effect() -> None:
    node = ConfigNode()
    assert change(node, Case(NONE, TOPIC, "t", [("retention.ms", SET, "5")])) == [NONE]
    assert node.settings.topic_config("t").retention_ms == 5
    assert node.last_change.topics == ("t",)
    assert change(node, Case(NONE, TOPIC, "t", [("retention.ms", DELETE, None)])) == [NONE]
    assert node.settings.topic_config("t").retention_ms == 604_800_000


def test_a_brokers_setting_takes_effect_for_it_and_for_all() -> None:
    node = ConfigNode({"log.retention.hours": "1"})
    assert change(node, Case(NONE, BROKER, "", [("log.retention.ms", SET, "5"), ("max.connections", SET, "7")])) == [NONE]
    assert node.last_change.topic_defaults_changed
    assert node.settings.topic_config("t").retention_ms == 5
    assert change(node, Case(NONE, BROKER, "1", [("max.connections", SET, "9")])) == [NONE]
    assert node.settings.current.max_connections == 9
    assert change(node, Case(NONE, BROKER, "1", [("max.connections", DELETE, None)])) == [NONE]
    assert node.settings.current.max_connections == 7


def test_lists_are_appended_to_and_subtracted_from() -> None:
    node = ConfigNode()
    assert change(node, Case(NONE, TOPIC, "t", [("cleanup.policy", APPEND, "compact,delete")])) == [NONE]
    assert node.settings.topic_settings("t") == {"cleanup.policy": "delete,compact"}
    assert change(node, Case(NONE, TOPIC, "t", [("cleanup.policy", SUBTRACT, "delete")])) == [NONE]
    assert node.settings.topic_settings("t") == {"cleanup.policy": "compact"}


def test_unchanged_value_writes_no_record_except_for_brokers() -> None:
    node = ConfigNode()
    case = Case(NONE, TOPIC, "t", [("retention.ms", SET, "5")])
    change(node, case)
    node.written.clear()
    assert change(node, case) == [NONE]
    assert node.written == []
    case = Case(NONE, BROKER, "1", [("max.connections", SET, "5")])
    change(node, case)
    node.written.clear()
    change(node, case)
    assert len(node.written) == 1


def test_alter_configs_removes_settings_it_does_not_name() -> None:
    node = ConfigNode()
    change(node, Case(NONE, TOPIC, "t", [("retention.ms", SET, "5"), ("segment.ms", SET, "6")]))
    assert replace(node, Case(NONE, TOPIC, "t", [("segment.ms", SET, "7")])) == [NONE]
    assert node.settings.topic_settings("t") == {"segment.ms": "7"}
    assert replace(node, Case(NONE, TOPIC, "t", [])) == [NONE]
    assert node.settings.topic_settings("t") == {}


def test_one_refused_resource_does_not_affect_the_others() -> None:
    node = ConfigNode()
    here, nowhere = Case(NONE, TOPIC, "t", [("retention.ms", SET, "5")]), Case(NONE, TOPIC, "x", [("retention.ms", SET, "5")])
    group, metrics = (
        Case(NONE, GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]),
        Case(NONE, CLIENT_METRICS, "m", []),
    )
    assert change(node, nowhere, here, group, metrics) == [UNKNOWN_TOPIC, NONE, NONE, NONE]
    assert [type(record) for record in node.written] == [ConfigRecord, ConfigRecord]


def test_a_resource_named_twice_is_refused_twice() -> None:
    node = ConfigNode()
    case, other = Case(NONE, TOPIC, "t", [("retention.ms", SET, "5")]), Case(NONE, GROUP, "g", [])
    assert change(node, case, other, case) == [INVALID_REQUEST, NONE, INVALID_REQUEST]
    assert replace(node, case, other, case) == [INVALID_REQUEST, NONE, INVALID_REQUEST]
    assert node.written == []


def test_no_resources_is_no_change() -> None:
    assert change(ConfigNode()) == []
    assert replace(ConfigNode()) == []


def test_logger_levels_change_at_once_and_only_if_all_are_valid() -> None:
    node = ConfigNode()
    both = [("root", SET, "WARN"), ("ottla.log", SET, "DEBUG")]
    assert change(node, Case(NONE, BROKER_LOGGER, "1", both), validate_only=True) == [NONE]
    assert node.loggers.now == {"root": "INFO", "ottla.log": "INFO"}
    assert change(node, Case(NONE, BROKER_LOGGER, "1", [("root", SET, "WARN"), ("nobody", SET, "DEBUG")])) == [
        ErrorCode.INVALID_CONFIG
    ]
    assert node.loggers.now == {"root": "INFO", "ottla.log": "INFO"}
    assert change(node, Case(NONE, BROKER_LOGGER, "1", both)) == [NONE]
    assert node.loggers.now == {"root": "WARN", "ottla.log": "DEBUG"}
    assert change(node, Case(NONE, BROKER_LOGGER, "1", [("ottla.log", DELETE, None)])) == [NONE]
    assert node.loggers.now == {"root": "WARN", "ottla.log": "WARN"}
    assert node.written == []


@pytest.mark.parametrize("name", ["ottla.log", "log", "kafka.log.LogCleaner"])
def test_logger_is_found_by_the_name_that_log_lines_print(name: str) -> None:
    node = ConfigNode()
    assert change(node, Case(NONE, BROKER_LOGGER, "1", [(name, SET, "DEBUG")])) == [NONE]
    assert node.loggers.now["ottla.log"] == "DEBUG"


def test_misspelt_logger_gets_a_suggestion() -> None:
    known = ["root", "ottla.coordinator", "ottla.log"]
    with pytest.raises(KafkaError, match=r"there is no logger coordinater: did you mean coordinator\?"):
        find_logger("coordinater", known)
    with pytest.raises(KafkaError, match=r"there is no logger org\.apache\.zoo: there are root, coordinator, log"):
        find_logger("org.apache.zoo", known)


def test_python_logger_gets_the_new_level() -> None:
    loggers = PythonLoggers()
    child = logging.getLogger("ottla.test_loggers")
    before = logging.getLogger("ottla").level
    try:
        loggers.set_level("root", "ERROR")
        assert not child.isEnabledFor(logging.WARNING)
        assert (loggers.levels()["root"], loggers.levels()["ottla.test_loggers"]) == ("ERROR", "ERROR")
        loggers.set_level("ottla.test_loggers", "TRACE")
        assert child.isEnabledFor(logging.DEBUG)
        assert loggers.levels()["ottla.test_loggers"] == "TRACE"
        loggers.set_level("ottla.test_loggers", None)
        assert loggers.levels()["ottla.test_loggers"] == "ERROR"
        assert logging.getLogger().level not in (logging.ERROR, 5)
    finally:
        logging.getLogger("ottla").setLevel(before)


@pytest.mark.parametrize("module", [alter_configs, incremental_alter_configs])
def test_a_failed_request_is_refused_resource_by_resource(module: object) -> None:
    cases = [Case(NONE, TOPIC, "t", []), Case(NONE, BROKER, "1", [])]
    request = legacy_request(*cases) if module is alter_configs else incremental_request(*cases)
    response = module.refuse(None, request, KafkaError(ErrorCode.NOT_CONTROLLER, "not here"))  # type: ignore[attr-defined]
    assert [(entry.resource_name, entry.error_code, entry.error_message) for entry in response.responses] == [
        ("t", ErrorCode.NOT_CONTROLLER, "not here"),
        ("1", ErrorCode.NOT_CONTROLLER, "not here"),
    ]
