"""The broker settings as a table: every one of Kafka 4.3's, parsed from its row when it is first asked for.

Which of them Ottla goes by, and what each does, is told in `broker_docs`; a key made here carries no words.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.config.broker_table import BROKER_ROWS
from ottla.config.keys import ConfigKey, ConfigTable, Importance, UpdateMode
from ottla.config.values import (
    ConfigType,
    Rule,
    Value,
    at_least,
    between,
    between_or,
    filled_list,
    filled_text,
    one_of,
    one_of_ignoring_case,
    parse_value,
    words_from,
)

_LISTENER_PREFIX = "listener.name."


class RowTable(ConfigTable):
    """A table whose keys are made of rows of text, each when it is first wanted."""

    def __init__(self, subject: str, rows: str) -> None:
        super().__init__(subject, ())
        self._rows = {line[: line.index(" ")]: line for line in rows.splitlines()}

    def __getitem__(self, name: str) -> ConfigKey:
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = key_of_row(self._rows[name])
        return key

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def key_of_row(row: str) -> ConfigKey:
    """name | type | default | valid values | importance [| update mode]"""
    name, type_text, default, valid, importance, *mode = row.split(" | ")
    type_ = ConfigType(type_text)
    return ConfigKey(
        name,
        type_,
        _default(name, type_, default),
        _rule(type_, valid),
        Importance(importance),
        "",
        UpdateMode(mode[0]) if mode else UpdateMode.CLUSTER_WIDE,
    )


def _default(name: str, type_: ConfigType, text: str) -> Value:
    if text in ("null", "REQUIRED"):
        return None
    if type_ is ConfigType.LIST:
        text = text.strip("[]")
    return parse_value(name, type_, text)


def _rule(type_: ConfigType, valid: str) -> Rule | None:
    if valid == "-" or valid == "non-null string":
        return None
    if valid == "non-empty string":
        return filled_text
    if valid == "non-empty list":
        return filled_list
    if valid.startswith("(case insensitive) "):
        return one_of_ignoring_case(*_words(valid.removeprefix("(case insensitive) ")))
    if "..." not in valid:
        return (words_from if type_ is ConfigType.LIST else one_of)(*_words(valid))
    bounds, _, other = valid.partition(" or ")
    least, _, most = bounds.strip("[]").partition(",...")
    if not most:
        return at_least(_number(least))
    if other:
        return between_or(_number(least), _number(most[1:]), _number(other))
    return between(_number(least), _number(most[1:]))


def _words(text: str) -> list[str]:
    return text.strip("[]").split(", ")


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


BROKER_KEYS = RowTable("broker", BROKER_ROWS)


def base_name(name: str) -> str:
    """The setting that `name` is without the listener it is for: `listener.name.x.max.connections` → `max.connections`.

    A SASL setting may name a mechanism after the listener (`listener.name.x.scram-sha-256.sasl.jaas.config`).
    """
    if not name.startswith(_LISTENER_PREFIX):
        return name
    rest = name[len(_LISTENER_PREFIX) :].partition(".")[2]
    if rest not in BROKER_KEYS and (shorter := rest.partition(".")[2]) in BROKER_KEYS:
        return shorter
    return rest
