"""The tables against Kafka's own: names, types, defaults, rules, importance; and words of ours on every setting."""

from pathlib import Path

import pytest

from ottla.config.broker_log_keys import BROKER_LOG_KEYS
from ottla.config.keys import ConfigKey, ConfigTable
from ottla.config.topic import LogConfig
from ottla.config.topic_keys import HOUR_MS, MINUTE_MS, TOPIC_KEYS, TOPIC_SYNONYMS
from ottla.config.values import Value, format_value

SECTIONS = (Path(__file__).parent / "data" / "kafka_configs.txt").read_text().split("== ")[1:]
ROWS = {
    section.split("\n")[0]: [line.split(" | ") for line in section.strip().split("\n")[1:]] for section in SECTIONS
}  # section → rows


def default_text(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return format_value(value) or "null"


def facts_of(key: ConfigKey) -> tuple[str, str, str]:
    return key.type.value, default_text(key.default), key.importance.value


@pytest.mark.parametrize("row", ROWS["topic"], ids=lambda row: row[0])
def test_topic_setting_is_kafkas(row: list[str]) -> None:
    name, type_, default, _valid, importance = row
    assert facts_of(TOPIC_KEYS[name]) == (type_, default, importance)


@pytest.mark.parametrize("row", ROWS["broker log"], ids=lambda row: row[0])
def test_broker_setting_is_kafkas(row: list[str]) -> None:
    name, type_, default, _valid, importance, mode = row
    assert facts_of(BROKER_LOG_KEYS[name]) == (type_, default, importance)
    assert BROKER_LOG_KEYS[name].update_mode.value == mode


def test_topic_settings_are_all_of_kafkas_and_one_internal() -> None:
    assert set(TOPIC_KEYS) - {row[0] for row in ROWS["topic"]} == {"internal.segment.bytes"}
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


@pytest.mark.parametrize(
    ("table", "row"),
    [
        (table, row)
        for table, rows in ((TOPIC_KEYS, ROWS["topic"]), (BROKER_LOG_KEYS, ROWS["broker log"]))
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


def test_settings_without_a_range_have_no_rule() -> None:
    for row in ROWS["topic"] + ROWS["broker log"]:
        table = TOPIC_KEYS if len(row) == 5 else BROKER_LOG_KEYS
        assert (table[row[0]].rule is None) == (row[3] == "-"), row[0]


@pytest.mark.parametrize("table", [TOPIC_KEYS, BROKER_LOG_KEYS])
def test_every_setting_has_words_of_ours(table: ConfigTable) -> None:
    for key in table.values():
        assert len(key.documentation) > 20, key.name
        assert key.documentation.endswith("."), key.name


def test_every_topic_setting_is_an_attribute_of_log_config() -> None:
    config = LogConfig()
    for key in TOPIC_KEYS.values():
        assert getattr(config, key.attribute) == key.default, key.name


def test_a_table_refuses_two_settings_of_one_name() -> None:
    key = TOPIC_KEYS["retention.ms"]
    with pytest.raises(ValueError, match="defined twice"):
        ConfigTable("topic", [key, key])
