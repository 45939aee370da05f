"""Options of table readers and writers: unknown names are refused with the one that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from ottla.spark.errors import SparkOptionError

SPARKS_OWN = frozenset({"path", "checkpointlocation", "queryname"})
IDENTITY = ("txnAppId", "txnVersion")


class TableOptions:
    """The options of one reader or writer, by their documented names, in any case."""

    def __init__(self, given: Mapping[str, str], known: Iterable[str], what: str, prefixes: Iterable[str] = ()) -> None:
        names = {name.lower(): name for name in known}
        starts = tuple(prefixes)
        self._what = what
        self._values: dict[str, str] = {}
        for name, value in given.items():
            lower = name.lower()
            if lower in names:
                self._values[names[lower]] = value
            elif lower.startswith(starts) if starts else False:
                self._values[name] = value
            elif lower not in SPARKS_OWN:
                close = difflib.get_close_matches(lower, names, 1)
                hint = f"did you mean {names[close[0]]}?" if close else f"there are {', '.join([*names.values(), *starts])}"
                raise SparkOptionError(f"{name} is no option of {what}; {hint}")

    def get(self, name: str) -> str | None:
        """An option's text, or None."""
        return self._values.get(name)

    def needed(self, name: str, example: str) -> str:
        """An option that must be there."""
        value = self._values.get(name)
        if not value:
            raise SparkOptionError(f"{self._what} needs the option {name}, such as {example}")
        return value

    def choice(self, name: str, choices: Iterable[str], default: str) -> str:
        """An option with a few values."""
        value, allowed = (self._values.get(name) or default).lower(), tuple(choices)
        if value not in allowed:
            raise SparkOptionError(f"{name} is {value!r}: it must be {' or '.join(allowed)}")
        return value

    def names(self, name: str) -> tuple[str, ...]:
        """An option with names of columns, separated by commas."""
        return tuple(dict.fromkeys(each.strip() for each in (self._values.get(name) or "").split(",") if each.strip()))

    def whole_number(self, name: str, least: int = 1) -> int | None:
        """An option that is a whole number, or None."""
        text = self._values.get(name)
        if text is None:
            return None
        if not text.strip().lstrip("-").isdecimal() or int(text) < least:
            raise SparkOptionError(f"{name} is {text!r}: it must be a whole number of at least {least}")
        return int(text)

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """The options that begin with a prefix, without it."""
        return {name[len(prefix) :]: value for name, value in self._values.items() if name.lower().startswith(prefix)}
