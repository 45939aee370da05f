"""The target of an offset reset: the flags of Kafka's scenarios. The user must choose exactly one."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import click

from ottla.cli.common.times import TIME_HELP, current_ms, parse_time_ms
from ottla.config.values import parse_duration_ms

F = TypeVar("F", bound=Callable[..., Any])


class Scenario(Enum):
    """Kafka's scenarios; the values are the flags."""

    EARLIEST = "to_earliest"
    LATEST = "to_latest"
    CURRENT = "to_current"
    OFFSET = "to_offset"
    SHIFT = "shift_by"
    DATETIME = "to_datetime"
    DURATION = "by_duration"
    FILE = "from_file"


class Target(NamedTuple):
    """A scenario and its number: an offset, how far to shift, or milliseconds since 1970."""

    scenario: Scenario
    number: int = 0
    path: str = ""


_OPTIONS = (
    click.option("--to-earliest", is_flag=True, help="To the first record."),
    click.option("--to-latest", is_flag=True, help="To the end: only new records are read."),
    click.option("--to-current", is_flag=True, help="To the committed offset; to the end where there is none."),
    click.option("--to-offset", type=int, metavar="N", help="To this offset, or the nearest one that exists."),
    click.option("--shift-by", type=int, metavar="N", help="Forward by N records, or back if N is negative."),
    click.option(
        "--to-datetime",
        metavar="TIME",
        help=f"To the first record since then: {TIME_HELP}.",
    ),
    click.option("--by-duration", metavar="DURATION", help="To the first record of the last PT1H30M, or 1h30m."),
    click.option("--from-file", metavar="CSV", help="To offsets from a file as --export writes it; - reads standard input."),
)


def target_options(function: F) -> F:
    """Add the flags of all scenarios; the function gets them as `**arguments`, for `find_target`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def find_target(arguments: dict[str, Any]) -> Target:
    """The one scenario that the user chose."""
    given = [each for each in Scenario if arguments[each.value] is not None and arguments[each.value] is not False]
    if len(given) != 1:
        flags = [f"--{each.value.replace('_', '-')}" for each in given or Scenario]
        if given:
            raise click.UsageError(f"{' and '.join(flags)} cannot be used together: choose one of them")
        raise click.UsageError(f"say where to reset to: choose one of {', '.join(flags)}")
    scenario = given[0]
    value = arguments[scenario.value]
    if scenario is Scenario.DATETIME:
        return Target(scenario, parse_time_ms(value, "--to-datetime"))
    if scenario is Scenario.DURATION:
        return Target(scenario, _parse_duration_start_ms(value))
    if scenario is Scenario.FILE:
        return Target(scenario, path=value)
    return Target(scenario, value if scenario in (Scenario.OFFSET, Scenario.SHIFT) else 0)


_JAVA_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:[.,]\d{0,9})?)S)?)?", re.ASCII | re.IGNORECASE
)
_UNITS_S = (86_400, 3_600, 60, 1)


def parse_java_duration_ms(text: str) -> int | None:
    """Parse Kafka's `PnDTnHnMnS` as Java does; None if `text` is not a duration."""
    match = _JAVA_DURATION.fullmatch(text)
    if match is None or not any(match.group(2, 4, 5, 6)) or match[3] in ("T", "t"):
        return None
    numbers = [float((part or "0").replace(",", ".")) for part in match.group(2, 4, 5, 6)]
    seconds = sum(number * unit for number, unit in zip(numbers, _UNITS_S, strict=True))
    return round(seconds * 1000) * (-1 if match[1] == "-" else 1)


def _parse_duration_start_ms(text: str) -> int:
    """The time that is this duration before now."""
    duration_ms = parse_java_duration_ms(text)
    if duration_ms is None:
        duration_ms = parse_duration_ms(text)
    if duration_ms is None:
        raise click.UsageError(f"--by-duration does not understand {text!r}: write PT1H30M or P7D, or 1h30m or 7d")
    return current_ms() - duration_ms
