"""The tables agree with Kafka's (names, types, defaults, rules, importance), and every setting is documented."""

from pathlib import Path

import pytest

from ottla.config.broker_docs import documentation
from ottla.config.broker_keys import BROKER_KEYS, base_name
from ottla.config.broker_table import BROKER_ROWS
from ottla.config.keys import ConfigKey, ConfigTable
from ottla.config.topic import LogConfig
from ottla.config.topic_keys import CONFLUENTS, HOUR_MS, MINUTE_MS, TOPIC_KEYS, TOPIC_SYNONYMS
from ottla.config.values import InvalidConfig, Value, format_value

SECTIONS = (Path(__file__).parent / "data" / "kafka_configs.txt").read_text().split("== ")[1:]
ROWS = {
    section.split("\n")[0]: [line.split(" | ") for line in section.strip().split("\n")[1:]] for section in SECTIONS
}  # section → rows


def default_text(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    text = format_value(value)
    return "null" if text is None else text


def facts_of(key: ConfigKey) -> tuple[str, str, str]:
    return key.type.value, default_text(key.default), key.importance.value


@pytest.mark.parametrize("row", ROWS["topic"], ids=lambda row: row[0])
def test_topic_setting_is_kafkas(row: list[str]) -> None:
    name, type_, default, _valid, importance = row
    assert facts_of(TOPIC_KEYS[name]) == (type_, default, importance)


def test_topic_settings_are_all_of_kafkas_one_internal_and_confluents() -> None:
    others = set(TOPIC_KEYS) - {row[0] for row in ROWS["topic"]}
    assert {name for name in others if not name.startswith(CONFLUENTS)} == {"internal.segment.bytes"}
    assert all(TOPIC_KEYS[name].internal for name in others), "shown only where they are set"
    assert {row[0] for row in ROWS["topic"]} <= set(TOPIC_KEYS)


def test_synonyms_are_kafkas() -> None:
    factors = {"minutes": MINUTE_MS, "hours": HOUR_MS, "": 1}
    expected = {}
    for name, broker_names in ROWS["synonyms"]:
        pairs = [word.rstrip(")").partition("(") for word in broker_names.split()]
        expected[name] = tuple((broker, factors[unit]) for broker, _, unit in pairs)
    assert expected == TOPIC_SYNONYMS


def bounds(valid: str) -> tuple[float | None, float | None]:
    """[1,...] or [1,...,9] as numbers."""
    words = valid.strip("[]").split(",")
    return float(words[0]), float(words[2]) if len(words) == 3 else None


BROKER_TABLE = [line.split(" | ") for line in BROKER_ROWS.splitlines()]


@pytest.mark.parametrize(
    ("table", "row"),
    [
        (table, row)
        for table, rows in ((TOPIC_KEYS, ROWS["topic"]), (BROKER_KEYS, BROKER_TABLE))
        for row in rows
        if "..." in row[3] and "or" not in row[3] and "Id" not in row[3]
    ],
    ids=lambda part: part[0] if isinstance(part, list) else "",
)
def test_range_is_kafkas(table: ConfigTable, row: list[str]) -> None:
    key = table[row[0]]
    least, most = bounds(row[3])
    assert key.rule is not None
    step = 0.001 if key.type.value == "DOUBLE" else 1
    assert key.rule(least) is None
    assert key.rule(least - step) is not None
    if most is not None:
        assert key.rule(most) is None
        assert key.rule(most + step) is not None


def test_settings_without_valid_values_have_no_rule() -> None:
    for row in ROWS["topic"] + BROKER_TABLE:
        table = TOPIC_KEYS if len(row) == 5 else BROKER_KEYS
        assert (table[row[0]].rule is None) == (row[3] in ("-", "non-null string")), row[0]


@pytest.mark.parametrize("row", BROKER_TABLE, ids=lambda row: row[0])
def test_a_broker_row_is_parsed_correctly(row: list[str]) -> None:
    name, type_, default, _valid, importance, mode, *internal = row
    key = BROKER_KEYS[name]
    assert facts_of(key) == (type_, "null" if default == "REQUIRED" else default, importance)
    assert key.update_mode.value == mode
    assert key.internal == bool(internal)
    if key.default is not None:
        key.check(key.default)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("compression.gzip.level", "-1", "0"),
        ("group.consumer.migration.policy", "Upgrade", "sideways"),
        ("security.inter.broker.protocol", "PLAINTEXT", "plaintext"),
        ("process.roles", "broker", "broker,king"),
        ("listeners", "A://:1", ""),
        ("ssl.cipher.suites", "a,a", "a,"),
        ("remote.log.metadata.manager.class.name", "x", ""),
        ("group.share.delivery.count.limit", "10", "11"),
        ("log.cleaner.min.cleanable.ratio", "0.25", "1.25"),
    ],
)
def test_rules_of_every_shape(name: str, good: str, bad: str) -> None:
    BROKER_KEYS[name].parse(good)
    with pytest.raises(InvalidConfig, match=f"^{name}=.*must"):
        BROKER_KEYS[name].parse(bad)


def test_lists_with_a_rule_drop_duplicates() -> None:
    assert BROKER_KEYS["process.roles"].parse("broker, broker") == ("broker",)
    assert TOPIC_KEYS["cleanup.policy"].parse("compact,delete,compact") == ("compact", "delete")
    assert TOPIC_KEYS["leader.replication.throttled.replicas"].parse("0:1,0:1") == ("0:1", "0:1")


def test_a_listener_can_have_settings_of_its_own() -> None:
    assert base_name("listener.name.internal.max.connections") == "max.connections"
    assert base_name("listener.name.x.scram-sha-256.sasl.jaas.config") == "sasl.jaas.config"
    assert base_name("max.connections") == "max.connections"
    assert base_name("listener.name.x.nothing.such") not in BROKER_KEYS


def test_every_topic_setting_is_documented() -> None:
    for key in TOPIC_KEYS.values():
        assert_is_a_sentence(key.name, key.documentation)


def test_every_documented_broker_setting_exists() -> None:
    for name, words in documentation().items():
        assert name in BROKER_KEYS
        assert_is_a_sentence(name, words)


def assert_is_a_sentence(name: str, words: str) -> None:
    assert len(words) > 15, name
    assert words.endswith("."), name


def test_every_topic_setting_is_an_attribute_of_log_config() -> None:
    config = LogConfig()
    for key in TOPIC_KEYS.values():
        assert getattr(config, key.attribute) == key.default, key.name


def test_a_table_refuses_two_settings_of_one_name() -> None:
    key = TOPIC_KEYS["retention.ms"]
    with pytest.raises(ValueError, match="defined twice"):
        ConfigTable("topic", [key, key])
