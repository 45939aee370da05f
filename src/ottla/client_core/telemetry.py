"""`Telemetry`: pushes the client's metrics to a cluster that asks for them (KIP-714).

A machine (`machine.py`). It asks any broker what the cluster subscribes to (GetTelemetrySubscriptions), pushes those metrics
every push interval (PushTelemetry), and asks again when the broker says that the subscription has changed. The first push after
a new subscription waits for 0.5 to 1.5 intervals, so that clients that were started together do not push together. `close`
makes it push once more, marked as the last.

What it does after an error:

    UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE   ask for the subscription at once; do not use that codec again
    TELEMETRY_TOO_LARGE, THROTTLING_QUOTA_EXCEEDED          ask for the subscription after the push interval
    a lost connection, a timeout                            the same request again after the push interval, or 30 s
    no broker with the API, other errors when asking        ask again in 5 minutes
    anything else, such as INVALID_RECORD                   push nothing more: trying again would not help

It never asks more often than that, so a broker that answers nonsense does not keep the client busy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from ottla.client_core.machine import ANY_NODE, Request
from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.client_core.telemetry_payload import DEFAULT_INTERVAL_MS, Payload, Subscription, TelemetryPayloads, subscription_of
from ottla.errors import KafkaError, UnsupportedVersionError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.ids import ZERO_UUID, Uuid, uuid_text
from ottla.records.compression import Codec
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.push_telemetry import PushTelemetryRequest

logger = logging.getLogger("ottla.client.telemetry")

RETRY_MS = 30_000
"""Until the next attempt if no broker could be asked yet."""
_PRECISION = 1_000

_ASK_AT_ONCE = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
_ASK_LATER = (ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
_GIVE_UP = (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_RECORD, ErrorCode.UNSUPPORTED_VERSION)


class TelemetrySettings(Protocol):
    """The settings that telemetry depends on; every client has them."""

    @property
    def enable_metrics_push(self) -> bool: ...


class Telemetry:
    """Pushes metrics until it is closed, or a broker refuses them for good."""

    def __init__(
        self,
        settings: TelemetrySettings,
        metrics: MetricsRegistry,
        random_below: Callable[[int], int],
        unix_ms: Callable[[], int],
        *,
        started_ms: int | None = None,
        resource: dict[str, str] | None = None,
    ) -> None:
        """`started_ms`: since when the metrics count, by the wall clock; now by default. For `resource` see there."""
        self.client_instance_id: Uuid | None = None
        """The id that the cluster gave this client; None until it did."""
        self.subscription: Subscription | None = None
        self.refusal: str | None = None
        """Why nothing is pushed any more; None while telemetry works or may work again."""
        self.failure: KafkaError | None = None
        """Why the last question for the subscription failed; None after an answer."""
        self._random_below = random_below
        self._unix_ms = unix_ms
        """The wall clock, for the times inside the payload."""
        self._is_enabled = settings.enable_metrics_push
        self._is_push_next = False
        self._is_in_flight = False
        self._due_ms: int | None = None
        self._refused_codecs: set[Codec] = set()
        self._payloads = TelemetryPayloads(metrics, unix_ms() if started_ms is None else started_ms)
        if resource is not None:
            self._payloads.resource = resource
        self.is_closing = False
        """Whether `close` was called."""
        self._is_last_sent = False

    # For the owner

    @property
    def resource(self) -> dict[str, str]:
        """Attributes of the client that go with every push, to be changed in place.

        transactional_id, group_id, group_instance_id, group_member_id, client_rack: those that the client has.
        """
        return self._payloads.resource

    def close(self) -> None:
        """Push once more, if the cluster wants metrics. Wake the runner, then wait for `is_closed`, but not for long."""
        self.is_closing = True

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to send after `close`."""
        is_pushing = self._is_in_flight and self._is_push_next
        return self.is_closing and not is_pushing and not self._has_last_push

    @property
    def _has_last_push(self) -> bool:
        """Whether a last push can and should be sent: without a valid subscription there is no place for it."""
        return self._is_working and self._is_push_next and not self._is_last_sent

    @property
    def _is_working(self) -> bool:
        return self._is_enabled and self.refusal is None

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        if self._is_in_flight or not self._is_working:
            return []
        if self.is_closing:
            return [self._push(now_ms)] if self._has_last_push else []
        if self._due_ms is not None and now_ms < self._due_ms:
            return []
        return [self._push(now_ms) if self._is_push_next else self._ask()]

    def next_deadline_ms(self) -> int | None:
        if self._is_in_flight or not self._is_working:
            return None
        if self.is_closing:
            return 0 if self._has_last_push else None
        return self._due_ms or 0

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if isinstance(request.context, Payload):
            self._push_answered(request.context, response.error_code, now_ms)
        elif response.error_code:
            self.failure = exception_of(response.error_code)
            self._ask_refused(response.error_code, now_ms)
        else:
            self._subscribe(response, now_ms)
        self._is_in_flight = False
        if response.throttle_time_ms > 0 and self._due_ms is not None:
            self._due_ms = max(self._due_ms, now_ms + response.throttle_time_ms)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        self._is_in_flight = False
        self.failure = error
        if isinstance(error, UnsupportedVersionError):
            # No broker with a receiver of client metrics is found; another one may have it, or get it.
            self._ask_after(DEFAULT_INTERVAL_MS, now_ms)
        elif error.is_retriable:
            self._due_ms = now_ms + (self._interval_ms if self.subscription is not None else RETRY_MS)
        else:
            self._give_up(str(error))

    # Subscriptions

    @property
    def _interval_ms(self) -> int:
        return DEFAULT_INTERVAL_MS if self.subscription is None else self.subscription.interval_ms

    def _ask(self) -> Request:
        self._is_in_flight = True
        return Request(GetTelemetrySubscriptionsRequest(client_instance_id=self.client_instance_id or ZERO_UUID), ANY_NODE)

    def _ask_after(self, wait_ms: int, now_ms: int) -> None:
        self._is_push_next = False
        self._due_ms = now_ms + wait_ms

    def _subscribe(self, response: GetTelemetrySubscriptionsResponse, now_ms: int) -> None:
        if self.is_closing:
            return
        self.failure = None
        if self.client_instance_id is None:
            if response.client_instance_id == ZERO_UUID:
                self._give_up("the broker gave this client no instance id")
                return
            self.client_instance_id = response.client_instance_id
            logger.info("the cluster knows this client's metrics by the instance id %s", uuid_text(self.client_instance_id))
        old, new = self.subscription, subscription_of(response)
        self.subscription = new
        if old is not None and old.is_delta != new.is_delta:
            self._payloads.start_over()
        if new.prefixes:
            self._is_push_next = True
            chance = self._random_below(_PRECISION + 1)
            self._due_ms = now_ms + new.interval_ms // 2 + new.interval_ms * chance // _PRECISION
        else:
            self._ask_after(new.interval_ms, now_ms)

    def _ask_refused(self, code: int, now_ms: int) -> None:
        if code in _GIVE_UP:
            self._give_up(error_meaning(code))
        else:
            self._ask_after(self._interval_ms if code in _ASK_LATER else DEFAULT_INTERVAL_MS, now_ms)

    def _give_up(self, reason: str) -> None:
        self.refusal = reason
        self._due_ms = None
        logger.warning("metrics are no longer pushed to the cluster: %s", reason)

    # Pushes

    def _push(self, now_ms: int) -> Request:
        subscription = self.subscription
        assert subscription is not None, "a push follows a subscription"
        codec = next((each for each in subscription.codecs if each not in self._refused_codecs), Codec.NONE)
        payload = self._payloads.make(subscription, codec, now_ms, self._unix_ms())
        self._is_in_flight = True
        self._is_last_sent = self.is_closing
        message = PushTelemetryRequest(
            client_instance_id=self.client_instance_id or ZERO_UUID,
            subscription_id=subscription.id,
            terminating=self.is_closing,
            compression_type=codec,
            metrics=payload.content,
        )
        return Request(message, ANY_NODE, context=payload)

    def _push_answered(self, payload: Payload, code: int, now_ms: int) -> None:
        if not code:
            self._payloads.accepted(payload)
            self._due_ms = now_ms + self._interval_ms
        elif code in _ASK_AT_ONCE:
            if code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                self._refused_codecs.add(payload.codec)
            self._ask_after(0, now_ms)
        elif code in _ASK_LATER:
            self._ask_after(self._interval_ms, now_ms)
        else:
            self._give_up(error_meaning(code))
