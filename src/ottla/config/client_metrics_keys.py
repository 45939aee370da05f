"""Kafka 4.3's settings of a client metrics subscription: which metrics which clients push, and how often."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ottla.config.row_table import RowTable
from ottla.config.values import InvalidConfig
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

CLIENT_METRICS_KEYS = RowTable(
    "client metrics",
    """\
interval.ms | INT | 300000 | - | MEDIUM
match | LIST | [] | distinct list | MEDIUM
metrics | LIST | [] | distinct list | MEDIUM
""",
)

CLIENT_METRICS_DOCS = {
    "interval.ms": "How often the clients push, in milliseconds.",
    "match": "Which clients push: WHAT=REGULAR EXPRESSION entries, which must all match. Empty means every client.",
    "metrics": "Which metrics are pushed: prefixes of their names. Empty means none, `*` all.",
}

_INTERVAL_MS_MIN, _INTERVAL_MS_MAX = 100, 3_600_000
_EXPRESSION_LENGTH_MAX = 1000
_MATCH_LENGTH_MAX = 4000
_NESTING_MAX = 20
"""What regular expressions may have: compiling is recursive, and takes about 5 µs per character."""
_MATCHED = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def validate_client_metrics_settings(settings: Mapping[str, str]) -> None:
    """Raise `InvalidConfig`, or `KafkaError` where Kafka has another code, if a subscription may not have `settings`."""
    for name in settings:
        if name not in CLIENT_METRICS_KEYS:
            known = ", ".join(CLIENT_METRICS_KEYS)
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"unknown client metrics setting {name}: there are {known}")
    parsed = CLIENT_METRICS_KEYS.parse_known(settings)
    interval_ms = parsed.get("interval.ms")
    if isinstance(interval_ms, int) and not _INTERVAL_MS_MIN <= interval_ms <= _INTERVAL_MS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"interval.ms={interval_ms}: must be from {_INTERVAL_MS_MIN} to {_INTERVAL_MS_MAX}, an hour",
        )
    patterns = parsed.get("match")
    if isinstance(patterns, tuple):
        if sum(map(len, patterns)) > _MATCH_LENGTH_MAX:
            raise InvalidConfig("match", f"match is longer than {_MATCH_LENGTH_MAX} characters: use shorter expressions")
        for pattern in patterns:
            _check_pattern(pattern)


def _check_pattern(pattern: str) -> None:
    """Check one `WHAT=REGULAR EXPRESSION` entry."""
    what, _, expression = pattern.partition("=")
    if what.strip() not in _MATCHED or not expression or "=" in expression:
        raise InvalidConfig(
            "match", f"match has {pattern!r}: each entry must be WHAT=REGULAR EXPRESSION, with one of {', '.join(_MATCHED)}"
        )
    if len(expression) > _EXPRESSION_LENGTH_MAX or _nesting(expression) > _NESTING_MAX:
        raise InvalidConfig(
            "match",
            f"match has {pattern[:60]!r}..., whose regular expression is longer than {_EXPRESSION_LENGTH_MAX} characters or "
            f"has more than {_NESTING_MAX} brackets open at once: use a simpler one",
        )
    try:
        re.compile(expression.strip())
    except re.error as wrong:
        raise InvalidConfig("match", f"match has {pattern!r}, whose regular expression is invalid: {wrong}") from None


def _nesting(expression: str) -> int:
    """How many brackets are open at once, at most. Escaped ones count too: that is only stricter."""
    depth = deepest = 0
    for character in expression:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest
