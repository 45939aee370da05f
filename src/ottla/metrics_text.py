"""A writer for Prometheus's text format, version 0.0.4, and for OpenMetrics, for the pages of brokers and clients. Pure.

# HELP name what it is
# TYPE name counter
name{topic="t"} 12

OpenMetrics names a family of counters without `_total`, and ends with `# EOF`; the samples are the same.
"""

from __future__ import annotations

from collections.abc import Iterable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Labels = Iterable[tuple[str, object]]


class MetricsText:
    """Builds one page. The samples of a family have to follow its `family` call directly."""

    def __init__(self, is_openmetrics: bool = False) -> None:
        self._is_openmetrics = is_openmetrics
        self._lines: list[str] = []
        self._name = ""

    def family(self, name: str, kind: str, words: str) -> MetricsText:
        """Begin a family: `kind` is counter, gauge or summary."""
        self._name = name
        if self._is_openmetrics and kind == "counter":
            name = name.removesuffix("_total")
        self._lines.append(f"# HELP {name} {_escaped(words)}\n# TYPE {name} {kind}\n")
        return self

    def sample(self, value: float, labels: Labels = (), suffix: str = "") -> None:
        """One number of the family; `suffix` is `_sum` or `_count` of a summary."""
        shown = ",".join(f'{name}="{_quoted(str(text))}"' for name, text in labels)
        braces = f"{{{shown}}}" if shown else ""
        self._lines.append(f"{self._name}{suffix}{braces} {_number(value)}\n")

    def gauge(self, name: str, words: str, value: float, labels: Labels = ()) -> None:
        """A family of one number that goes up and down."""
        self.family(name, "gauge", words).sample(value, labels)

    def counter(self, name: str, words: str, value: float, labels: Labels = ()) -> None:
        """A family of one number that only grows."""
        self.family(name, "counter", words).sample(value, labels)

    def encode(self) -> bytes:
        return "".join([*self._lines, "# EOF\n"] if self._is_openmetrics else self._lines).encode()


def _number(value: float) -> str:
    return repr(value) if isinstance(value, float) else str(int(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
