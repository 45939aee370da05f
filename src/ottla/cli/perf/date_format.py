"""Times in the patterns of Java's SimpleDateFormat, for --date-format: those letters that say a local date and time."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

import click

KAFKAS = "yyyy-MM-dd HH:mm:ss:SSS"
_TOKEN = re.compile(r"'(?:[^']|'')*'|([a-zA-Z])\1*|[^a-zA-Z']+")
_NUMBERS: dict[str, Callable[[datetime], int]] = {
    "M": lambda time: time.month,
    "d": lambda time: time.day,
    "H": lambda time: time.hour,
    "k": lambda time: time.hour or 24,
    "K": lambda time: time.hour % 12,
    "h": lambda time: time.hour % 12 or 12,
    "m": lambda time: time.minute,
    "s": lambda time: time.second,
    "S": lambda time: time.microsecond // 1000,
    "D": lambda time: time.timetuple().tm_yday,
    "u": lambda time: time.isoweekday(),
}
"""Letters whose value is padded with zeros to as many digits as there are letters."""
_WORDS = {"a": "%p", "E": "%a", "z": "%Z", "Z": "%z", "X": "%z"}


class DateFormat:
    """A pattern. Raises a usage error for a letter that is not known."""

    def __init__(self, pattern: str) -> None:
        self._tokens = [match.group() for match in _TOKEN.finditer(pattern)]
        if "".join(self._tokens) != pattern:
            raise click.UsageError(f"--date-format {pattern!r}: a quote (') has no end")
        for token in self._tokens:
            if token[0].isalpha() and token[0] not in ("y", *_NUMBERS, *_WORDS):
                raise click.UsageError(
                    f"--date-format {pattern!r}: {token[0]} is not one of the letters for a date and time; "
                    f"the default is {KAFKAS!r}, and text stands in quotes (')"
                )

    def show(self, time_s: float) -> str:
        """Seconds since 1970 in this pattern, as local time."""
        time = datetime.fromtimestamp(time_s).astimezone()
        return "".join(self._part(token, time) for token in self._tokens)

    def _part(self, token: str, time: datetime) -> str:
        letter, width = token[0], len(token)
        if letter == "'":
            return "'" if token == "''" else token[1:-1].replace("''", "'")
        if letter == "y":
            return f"{time.year % 100:02d}" if width == 2 else f"{time.year:0{width}d}"
        if letter == "M" and width > 2:
            return time.strftime("%b" if width == 3 else "%B")
        if letter == "E" and width > 3:
            return time.strftime("%A")
        if letter in _NUMBERS:
            return f"{_NUMBERS[letter](time):0{width}d}"
        return time.strftime(_WORDS[letter]) if letter in _WORDS else token
