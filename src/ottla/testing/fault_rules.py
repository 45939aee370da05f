"""Faults as data: what is done to which requests. Plain values that can be sent through a pipe as JSON."""

from __future__ import annotations

from typing import Final, NamedTuple

HELPER_CLIENT_ID: Final = "ottla-testing-helper"
"""The client id of the test's own helpers; faults do not affect them."""

FAIL: Final = "fail"
DELAY: Final = "delay"
DROP: Final = "drop"
LOSE_REPLY: Final = "lose_reply"
HANG: Final = "hang"
REFUSE_CONNECTIONS: Final = "refuse_connections"


class FaultRule(NamedTuple):
    """One fault. Fields that are None do not limit it."""

    kind: str
    api_key: int | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    times: int | None = None
    """How many requests it meets: the first that fit."""
    error_code: int = 0
    delay_s: float = 0.0
