"""The settings that all simulated clients share: timeouts and backoffs that fit into short runs."""

from __future__ import annotations

from typing import Any

REQUEST_TIMEOUT_MS = 3_000

CLIENT_SETTINGS: dict[str, Any] = {
    "request_timeout_ms": REQUEST_TIMEOUT_MS,
    "socket_connection_setup_timeout_ms": 2_000,
    "retry_backoff_ms": 30,
    "retry_backoff_max_ms": 250,
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 250,
    "enable_metrics_push": False,
}
