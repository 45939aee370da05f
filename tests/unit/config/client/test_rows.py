"""The rows agree with Kafka's own tables: names, types, defaults, importance, and the rules that they state."""

from pathlib import Path

import pytest

from ottla.config.client.kinds import KINDS
from ottla.config.keys import ConfigTable
from ottla.config.values import Value, format_value

SECTIONS = (Path(__file__).parent / "data" / "kafka_client_configs.txt").read_text().split("== ")[1:]
ROWS = {
    section.split("\n")[0]: [line.split(" | ") for line in section.strip().split("\n")[1:]] for section in SECTIONS
}  # kind → rows
TABLES = {kind.name: kind.table for kind in KINDS}
CASES = [(kind, row) for kind, rows in ROWS.items() for row in rows]


def default_text(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    text = format_value(value)
    return "null" if text is None else text


@pytest.mark.parametrize("kind", ROWS)
def test_every_setting_of_kafka_is_in_the_table_and_no_other(kind: str) -> None:
    assert sorted(TABLES[kind]) == sorted(row[0] for row in ROWS[kind])


@pytest.mark.parametrize(("kind", "row"), CASES, ids=lambda part: part if isinstance(part, str) else part[0])
def test_a_setting_is_kafkas(kind: str, row: list[str]) -> None:
    name, type_, default, valid, importance = row
    key = TABLES[kind][name]
    kafkas_default = "null" if default == "REQUIRED" else default.removeprefix("class ")
    assert (key.type.value, default_text(key.default), key.importance.value) == (type_, kafkas_default, importance)
    assert (key.rule is None) == (valid == "-" and type_ != "LIST")  # entries of lists are never empty
    if key.default is not None:
        key.check(key.default)


def accepts(table: ConfigTable, name: str, value: float | str) -> bool:
    rule = table[name].rule
    assert rule is not None
    return rule(value) is None


@pytest.mark.parametrize(
    ("kind", "row"),
    [(kind, row) for kind, row in CASES if "..." in row[3] and " or " not in row[3]],
    ids=lambda part: part if isinstance(part, str) else part[0],
)
def test_a_range_is_kafkas(kind: str, row: list[str]) -> None:
    words = row[3].strip("[]").split(",")
    step = 0.001 if row[1] == "DOUBLE" else 1
    assert accepts(TABLES[kind], row[0], float(words[0]))
    assert not accepts(TABLES[kind], row[0], float(words[0]) - step)
    if len(words) == 3:
        assert accepts(TABLES[kind], row[0], float(words[2]))
        assert not accepts(TABLES[kind], row[0], float(words[2]) + step)


@pytest.mark.parametrize(
    ("kind", "row"),
    [(kind, row) for kind, row in CASES if "[" in row[3] and "..." not in row[3]],
    ids=lambda part: part if isinstance(part, str) else part[0],
)
def test_a_choice_is_kafkas(kind: str, row: list[str]) -> None:
    for word in row[3].removeprefix("(case insensitive) ").strip("[]").split(", "):
        assert accepts(TABLES[kind], row[0], word.replace("PnDTnHnMn.nS", "P1DT2H3M4.5S"))
    assert not accepts(TABLES[kind], row[0], "no-such-word")
