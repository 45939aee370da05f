"""Misbehaviour as data: what is done to which requests. Goes through a pipe as it is."""

from __future__ import annotations

from typing import Final, NamedTuple

HELPER_CLIENT_ID: Final = "ottla-testing-helper"
"""Who the test's own helpers are; faults are not for them."""

FAIL: Final = "fail"
DELAY: Final = "delay"
DROP: Final = "drop"
LOSE_REPLY: Final = "lose_reply"
HANG: Final = "hang"
REFUSE_CONNECTIONS: Final = "refuse_connections"


class FaultRule(NamedTuple):
    """One fault. What is None does not narrow it."""

    kind: str
    api_key: int | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    times: int | None = None
    """How many requests it is done to, the first that fit."""
    error_code: int = 0
    delay_s: float = 0.0
