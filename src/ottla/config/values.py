"""Values of settings: Kafka's types, parsing and formatting, and rules for valid values.

Parsing follows Kafka: spaces around a value are dropped, booleans ignore case, a list is split at commas, an empty text is the
empty list. It is stricter in two points: `NaN` is not a number, and Java's spellings of doubles (`0.5d`, hexadecimal) are
refused.
"""

import math
import re
from collections.abc import Callable
from enum import Enum

from ottla.errors import OttlaError

Value = bool | int | float | str | tuple[str, ...] | None
"""A parsed value. The setting's `ConfigType` decides which of these types it has."""

Rule = Callable[[Value], str | None]
"""Checks a parsed value: None if it is valid, else the end of a sentence that says what it must be."""

LONG_MAX = 2**63 - 1
BY_DURATION = "by_duration:"
"""How an offset reset to a time begins; an ISO 8601 duration follows."""
_ISO_DURATION = (
    r"P(?=[0-9T])(?:([0-9]{1,12})D)?"
    r"(?:T(?=[0-9])(?:([0-9]{1,12})H)?(?:([0-9]{1,12})M)?(?:([0-9]{1,15})(?:[.]([0-9]{0,9}))?S)?)?"
)
_DURATION_PART = r"([0-9]{1,18})(ms|s|m|h|d)"
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


class InvalidConfig(OttlaError):
    """A setting's value is invalid, or its name is unknown. `name` is the setting."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class ConfigType(Enum):
    """The types of Kafka's settings, by the names that DescribeConfigs uses."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    SHORT = "SHORT"
    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


_WHOLE_NUMBER_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def parse_value(name: str, type_: ConfigType, text: str) -> Value:
    """Parse `text` as a value of type `type_`. Raises `InvalidConfig`."""
    trimmed = text.strip()
    if type_ is ConfigType.BOOLEAN:
        lowered = trimmed.lower()
        if lowered not in ("true", "false"):
            raise InvalidConfig(name, f"{name}={text!r}: must be true or false")
        return lowered == "true"
    if type_ in _WHOLE_NUMBER_BITS:
        bits = _WHOLE_NUMBER_BITS[type_]
        limit = 1 << (bits - 1)
        if not _is_whole_number(trimmed) or len(trimmed) > 32 or not -limit <= int(trimmed) < limit:
            raise InvalidConfig(name, f"{name}={text!r}: must be a whole number of at most {bits} bits, such as 1000")
        return int(trimmed)
    if type_ is ConfigType.DOUBLE:
        if not re.fullmatch(_DECIMAL, trimmed) or math.isinf(float(trimmed)):
            raise InvalidConfig(name, f"{name}={text!r}: must be a decimal number, such as 0.5")
        return float(trimmed)
    if type_ is ConfigType.LIST:
        return tuple(part.strip() for part in trimmed.split(",")) if trimmed else ()
    return trimmed


def _is_whole_number(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdigit()


def format_value(value: Value) -> str | None:
    """The text that Kafka's tools and protocol show for `value`; None for no value."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _java_double(value)
    return str(value)


def _java_double(value: float) -> str:
    """As Java writes doubles: 0.5, but 1.0E7 from ten million on and 1.0E-4 below a thousandth."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # imported late: rarely needed, and slow to import

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{int(exponent) + len(digits) - 1}"


def at_least(least: float) -> Rule:
    """A number not below `least`."""

    def rule(value: Value) -> str | None:
        return None if isinstance(value, int | float) and value >= least else f"must be at least {least}"

    return rule


def between(least: float, most: float) -> Rule:
    """A number from `least` to `most`, both included."""

    def rule(value: Value) -> str | None:
        allowed = isinstance(value, int | float) and least <= value <= most
        return None if allowed else f"must be from {least} to {most}"

    return rule


def between_or(least: float, most: float, other: float) -> Rule:
    """A number from `least` to `most`, or exactly `other`."""

    def rule(value: Value) -> str | None:
        allowed = isinstance(value, int | float) and (least <= value <= most or value == other)
        return None if allowed else f"must be from {least} to {most}, or {other}"

    return rule


def one_of(*choices: str) -> Rule:
    """One of the words `choices`, in exactly that spelling."""

    def rule(value: Value) -> str | None:
        return None if value in choices else f"must be one of {', '.join(choices)}"

    return rule


def one_of_ignoring_case(*choices: str) -> Rule:
    """One of the words `choices`, in capitals or not."""

    def rule(value: Value) -> str | None:
        return None if str(value).upper() in choices else f"must be one of {', '.join(choices)}, in capitals or not"

    return rule


def filled_text(value: Value) -> str | None:
    """Not the empty text. None is valid."""
    return None if value is None or value else "must not be empty"


def entries(value: Value) -> str | None:
    """A list, perhaps empty, without empty entries."""
    allowed = isinstance(value, tuple) and "" not in value
    return None if allowed else "must be a comma-separated list in which no entry is empty"


def filled(rule_of_entries: Rule) -> Rule:
    """A list that keeps `rule_of_entries`, and has at least one entry."""

    def rule(value: Value) -> str | None:
        return rule_of_entries(value) if value else "must not be empty"

    return rule


def words_from(*choices: str) -> Rule:
    """A list, perhaps empty, of the words `choices`."""

    def rule(value: Value) -> str | None:
        allowed = isinstance(value, tuple) and all(word in choices for word in value)
        return None if allowed else f"must be a comma-separated list of {', '.join(choices)}"

    return rule


def parse_duration_ms(text: str) -> int | None:
    """Parse `90s` or `1h30m`; None if `text` is not a duration."""
    if not re.fullmatch(f"({_DURATION_PART})+", text):
        return None
    return sum(int(number) * _UNIT_MS[unit] for number, unit in re.findall(_DURATION_PART, text))


def parse_iso_duration_ms(text: str) -> int | None:
    """Parse an ISO 8601 duration such as `PT1H30M` or `P7D`, fractions of a millisecond dropped; None if it is none."""
    match = re.fullmatch(_ISO_DURATION, text, re.IGNORECASE)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(number or 0) for number in match.groups()[:4])
    fraction_ms = int((match[5] or "").ljust(3, "0")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + fraction_ms


def offset_reset(value: Value) -> str | None:
    """Where a group without an offset begins: `earliest`, `latest`, or an ISO 8601 duration ago."""
    text = str(value)
    if text in ("earliest", "latest") or (
        text.startswith(BY_DURATION) and parse_iso_duration_ms(text.removeprefix(BY_DURATION)) is not None
    ):
        return None
    return "must be earliest, latest or by_duration: and a duration such as PT1H"


def offset_reset_or_none(value: Value) -> str | None:
    """Where a consumer without an offset begins: like `offset_reset`, or `none`: nowhere, it gets an error."""
    if value == "none" or offset_reset(value) is None:
        return None
    older = {"smallest": "earliest", "beginning": "earliest", "largest": "latest", "end": "latest", "error": "none"}.get(
        str(value)
    )
    hint = f"; {value} is {older} here" if older else ""
    return f"must be earliest, latest, none or by_duration: and a duration such as PT1H{hint}"


def throttled_replicas(value: Value) -> str | None:
    """`*`, or a list of partition:broker pairs. Empty entries are ignored."""
    if isinstance(value, tuple) and ("".join(value) == "*" or all(re.fullmatch(r"([0-9]+:[0-9]+)?", pair) for pair in value)):
        return None
    return "must be * or a comma-separated list of partition:broker pairs, such as 0:1,1:2"
