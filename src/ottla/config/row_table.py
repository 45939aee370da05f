"""Tables of settings kept as rows of text and parsed on first use, so that long tables are cheap to import.

A row is: name | type | default | valid values | importance [| update mode [| internal]]. In valid values, `[1,...]` is at
least 1, `[1,...,9]` from 1 to 9, `[a, b]` one of the words. A list may have any of the words, a `filled` list at least one.
Lists with a rule drop duplicate entries. REQUIRED means no default. An internal setting is shown only where it is set.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.config.keys import ConfigKey, ConfigTable, Importance, UpdateMode
from ottla.config.values import (
    ConfigType,
    Rule,
    Value,
    at_least,
    between,
    between_or,
    entries,
    filled,
    filled_text,
    offset_reset,
    offset_reset_or_none,
    one_of,
    one_of_ignoring_case,
    parse_value,
    words_from,
)


class RowTable(ConfigTable):
    """A table that parses each row of text when its key is first used."""

    def __init__(self, subject: str, rows: str) -> None:
        super().__init__(subject, ())
        self._rows = {line[: line.index(" ")]: line for line in rows.splitlines()}

    def __getitem__(self, name: str) -> ConfigKey:
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = key_of_row(self._rows[name])
        return key

    def default_of(self, name: str) -> Value:
        """The default of a setting, without parsing the rest of its row: a start needs many defaults and little else."""
        if name in self._keys:
            return self._keys[name].default
        _, type_text, default, _ = self._rows[name].split(" | ", 3)
        return _default(name, ConfigType(type_text), default)

    def valid_values_of(self, name: str) -> str:
        """The column of valid values of a setting, for documents."""
        return self._rows[name].split(" | ")[3]

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def key_of_row(row: str) -> ConfigKey:
    """Parse one row."""
    name, type_text, default, valid, importance, *rest = row.split(" | ")
    type_ = ConfigType(type_text)
    return ConfigKey(
        name,
        type_,
        _default(name, type_, default),
        _rule(type_, valid),
        Importance(importance),
        "",
        UpdateMode(rest[0]) if rest else UpdateMode.CLUSTER_WIDE,
        internal=len(rest) > 1,
        distinct=type_ is ConfigType.LIST and valid != "-",
    )


def _default(name: str, type_: ConfigType, text: str) -> Value:
    if text in ("null", "REQUIRED"):
        return None
    if type_ is ConfigType.LIST:
        text = text.strip("[]")
    return parse_value(name, type_, text)


def _rule(type_: ConfigType, valid: str) -> Rule | None:
    if valid in _NAMED_RULES:
        return _NAMED_RULES[valid]
    if valid.startswith("filled "):
        return filled(words_from(*_words(valid.removeprefix("filled "))))
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


_NAMED_RULES: dict[str, Rule | None] = {
    "-": None,
    "non-null string": None,
    "non-empty string": filled_text,
    "distinct list": entries,
    "filled distinct list": filled(entries),
    "offset reset": offset_reset,
    "offset reset or none": offset_reset_or_none,
}


def _words(text: str) -> list[str]:
    return text.strip("[]").split(", ")


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
