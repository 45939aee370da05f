"""Options of readers and writers by their documented names, in any case: an unknown one is refused with the nearest one.

Spark lower-cases the names before it hands them over.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from ottla.spark.errors import SparkOptionError

KAFKA_PREFIX = "kafka."
SPARKS_OWN = frozenset({"path", "checkpointlocation", "queryname", "header", "inferschema", "mergeschema"})
"""Options of readers and writers that Spark reads itself."""

_UNITS_MS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class Options:
    """The options of one reader or writer, by their documented names, whatever the case they are given in."""

    def __init__(self, given: Mapping[str, str], known: Iterable[str], what: str) -> None:
        self._what = what
        names = {name.lower(): name for name in known}
        self.kafka = {name[len(KAFKA_PREFIX) :]: value for name, value in given.items() if name.startswith(KAFKA_PREFIX)}
        self._values: dict[str, str] = {}
        for name, value in given.items():
            lower = name.lower()
            if lower.startswith(KAFKA_PREFIX) or lower in SPARKS_OWN:
                continue
            if lower not in names:
                close = difflib.get_close_matches(
                    lower, [*names, *(f"{KAFKA_PREFIX}{each}" for each in ["bootstrap.servers"])], 1
                )
                hint = f"; did you mean {names.get(close[0], close[0])}?" if close else ""
                raise SparkOptionError(f"{name} is no option of the ottla {what}{hint} (settings of clients begin with kafka.)")
            self._values[names[lower]] = value

    def get(self, name: str) -> str | None:
        """An option's text, or None."""
        return self._values.get(name)

    def given(self, *names: str) -> list[str]:
        """Those of `names` that were given."""
        return [name for name in names if name in self._values]

    def boolean(self, name: str, default: bool) -> bool:
        """An option that is true or false."""
        text = self._values.get(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise SparkOptionError(f"{name} is {text!r}: it must be true or false")
        return text.lower() == "true"

    def whole_number(self, name: str, least: int = 1) -> int | None:
        """An option that is a whole number, or None."""
        text = self._values.get(name)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            raise SparkOptionError(f"{name} is {text!r}: it must be a whole number") from None
        if number < least:
            raise SparkOptionError(f"{name} is {number}: it must be at least {least}")
        return number

    def duration_ms(self, name: str, default: int) -> int:
        """An option that is a duration such as 30s or 15m, in milliseconds."""
        text = self._values.get(name)
        if text is None:
            return default
        found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
        if found is None or found[2] not in _UNITS_MS:
            raise SparkOptionError(f"{name} is {text!r}: it must be a duration such as 30s or 15m")
        return int(found[1]) * _UNITS_MS[found[2]]
