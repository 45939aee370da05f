"""`Recovery`: when a client gives up the brokers that it knows and starts again from its bootstrap servers (KIP-1102).

Time counts from the first request for metadata after the last success. When it exceeds
`metadata.recovery.rebootstrap.trigger.ms`, a rebootstrap is due; the time then starts over. A cluster can also ask for one, by
REBOOTSTRAP_REQUIRED in a Metadata response. With `metadata.recovery.strategy=none` neither happens.

Part of a machine, not one itself: the owner counts `due_ms` among its deadlines.
"""

from __future__ import annotations

from typing import Protocol

from ottla.errors import KafkaError, NetworkError, RebootstrapRequiredError

_REQUIRED = "the cluster told this client to start again from its bootstrap servers (REBOOTSTRAP_REQUIRED)"


class RecoverySettings(Protocol):
    """The settings that recovery depends on; every client has them."""

    @property
    def metadata_recovery_strategy(self) -> str: ...
    @property
    def metadata_recovery_rebootstrap_trigger_ms(self) -> int: ...


class Recovery:
    """Counts the time without metadata."""

    def __init__(self, settings: RecoverySettings) -> None:
        self._is_on = settings.metadata_recovery_strategy == "rebootstrap"
        self._trigger_ms = settings.metadata_recovery_rebootstrap_trigger_ms
        self._since_ms: int | None = None
        self._is_required = False

    def asked(self, now_ms: int) -> None:
        """Metadata is asked for."""
        if self._since_ms is None:
            self._since_ms = now_ms

    def succeeded(self) -> None:
        """Metadata has come."""
        self._since_ms = None

    def required(self) -> KafkaError:
        """The cluster asked for a rebootstrap: the error of the request that it refused."""
        if not self._is_on:
            text = f"{_REQUIRED}, which metadata.recovery.strategy=none forbids: set it to rebootstrap, or make a new client"
            return RebootstrapRequiredError(text)
        self._is_required = True
        return NetworkError(_REQUIRED)

    def due_ms(self) -> int | None:
        """When a rebootstrap is due; None: not as things are."""
        if self._is_required:
            return 0
        if self._since_ms is None or not self._is_on:
            return None
        return self._since_ms + self._trigger_ms + 1

    def begin(self, now_ms: int) -> str | None:
        """The reason for a rebootstrap that begins now; None if none is due."""
        due_ms = self.due_ms()
        if due_ms is None or now_ms < due_ms:
            return None
        reason = _REQUIRED
        if not self._is_required:
            reason = f"no metadata came for {self._trigger_ms} ms (metadata.recovery.rebootstrap.trigger.ms)"
        self._is_required = False
        self._since_ms = now_ms
        return reason
