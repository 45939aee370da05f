"""The telemetry machine: when it asks and pushes, what it does after errors, and that no broker keeps it busy."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.peers.otlp import read_metrics

from ottla.client_core.machine import ANY_NODE, Request
from ottla.client_core.metrics.producer import ProducerMetrics
from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.client_core.telemetry import DEFAULT_INTERVAL_MS, INTERVAL_MIN_MS, RETRY_MS, Telemetry
from ottla.errors import KafkaError, NetworkError, SaslAuthenticationError, UnsupportedVersionError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.records.compression import Codec, decompress
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

INSTANCE = Uuid(bytes(range(16)))
INTERVAL_MS = 10_000


class Client:
    """A telemetry machine and its metrics. Chance is always in the middle: the first push comes after one interval."""

    def __init__(self, *, is_enabled: bool = True) -> None:
        settings = SimpleNamespace(metrics_sample_window_ms=30_000, metrics_num_samples=2, enable_metrics_push=is_enabled)
        registry = MetricsRegistry("producer", "p", settings)
        self.producer = ProducerMetrics(registry)
        self.machine = Telemetry(settings, registry, lambda limit: limit // 2, lambda: 1_000_000)

    def one(self, now_ms: int) -> Request:
        (request,) = self.machine.step(now_ms)
        assert request.node == ANY_NODE
        assert self.machine.step(now_ms) == [], "one request at a time"
        return request

    def subscribe(self, now_ms: int = 0, **changes: Any) -> None:
        request = self.one(now_ms)
        assert isinstance(request.message, GetTelemetrySubscriptionsRequest)
        self.machine.answered(request, subscribed(**changes), 0, now_ms)

    def push(self, now_ms: int) -> Request:
        request = self.one(now_ms)
        assert isinstance(request.message, PushTelemetryRequest)
        return request

    def refuse(self, request: Request, code: int, now_ms: int) -> None:
        self.machine.answered(request, PushTelemetryResponse(error_code=code), 0, now_ms)


def subscribed(**changes: Any) -> GetTelemetrySubscriptionsResponse:
    values: dict[str, Any] = {
        "client_instance_id": INSTANCE,
        "subscription_id": 5,
        "accepted_compression_types": [4, 3, 1, 2],
        "push_interval_ms": INTERVAL_MS,
        "telemetry_max_bytes": 1_000_000,
        "delta_temporality": True,
        "requested_metrics": ["*"],
    }
    return GetTelemetrySubscriptionsResponse(**(values | changes))


def test_metrics_are_pushed_every_interval() -> None:
    client = Client()
    first = client.one(0)
    assert first.message.client_instance_id == ZERO_UUID  # type: ignore[attr-defined]
    client.machine.answered(first, subscribed(), 0, 0)
    assert client.machine.client_instance_id == INSTANCE
    client.producer.batch_sent("events", 9, 100, 0, 0)
    assert client.machine.next_deadline_ms() == INTERVAL_MS
    assert client.machine.step(INTERVAL_MS - 1) == []
    request = client.push(INTERVAL_MS)
    message: Any = request.message
    assert (message.client_instance_id, message.subscription_id, message.terminating) == (INSTANCE, 5, False)
    assert message.compression_type == Codec.ZSTD
    points = read_metrics(decompress(Codec.ZSTD, message.metrics, 1_000_000))[1]
    assert [each.value for each in points if each.metric == "org.apache.kafka.producer.record.send.total"] == [9]
    client.refuse(request, 0, INTERVAL_MS + 40)
    assert client.machine.next_deadline_ms() == 2 * INTERVAL_MS + 40
    client.push(2 * INTERVAL_MS + 40)


@given(st.integers(0, 1_000))
def test_first_push_waits_for_half_to_one_and_a_half_intervals(chance: int) -> None:
    client = Client()
    client.machine._random_below = lambda limit: chance
    client.subscribe(7)
    due_ms = client.machine.next_deadline_ms()
    assert due_ms is not None
    assert INTERVAL_MS // 2 <= due_ms - 7 <= INTERVAL_MS * 3 // 2


def test_without_requested_metrics_it_asks_again_after_the_interval() -> None:
    client = Client()
    client.subscribe(requested_metrics=[])
    assert client.machine.step(INTERVAL_MS - 1) == []
    again: Any = client.one(INTERVAL_MS).message
    assert isinstance(again, GetTelemetrySubscriptionsRequest)
    assert again.client_instance_id == INSTANCE


def test_nothing_is_sent_if_it_is_off() -> None:
    client = Client(is_enabled=False)
    assert client.machine.step(0) == []
    assert client.machine.next_deadline_ms() is None
    client.machine.close()
    assert client.machine.is_closed


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE])
def test_a_changed_subscription_is_asked_for_at_once(code: ErrorCode) -> None:
    client = Client()
    client.subscribe()
    client.refuse(client.push(INTERVAL_MS), code, INTERVAL_MS)
    client.subscribe(INTERVAL_MS, subscription_id=6)
    message: Any = client.push(2 * INTERVAL_MS).message
    assert message.subscription_id == 6
    is_refused = code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert message.compression_type == (Codec.LZ4 if is_refused else Codec.ZSTD), "a refused codec is not used again"


@pytest.mark.parametrize("code", [ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.THROTTLING_QUOTA_EXCEEDED])
def test_after_too_much_it_asks_after_the_interval(code: ErrorCode) -> None:
    client = Client()
    client.subscribe()
    client.refuse(client.push(INTERVAL_MS), code, INTERVAL_MS)
    assert client.machine.step(2 * INTERVAL_MS - 1) == []
    client.subscribe(2 * INTERVAL_MS)


@pytest.mark.parametrize("code", [ErrorCode.INVALID_RECORD, ErrorCode.INVALID_REQUEST, ErrorCode.CLUSTER_AUTHORIZATION_FAILED])
def test_a_refusal_that_no_retry_heals_ends_telemetry(code: ErrorCode, caplog: pytest.LogCaptureFixture) -> None:
    client = Client()
    client.subscribe()
    client.refuse(client.push(INTERVAL_MS), code, INTERVAL_MS)
    assert client.machine.step(10**9) == []
    assert client.machine.next_deadline_ms() is None
    assert client.machine.refusal is not None
    assert client.machine.refusal in caplog.text
    client.machine.close()
    assert client.machine.is_closed


def test_an_answer_without_instance_id_ends_telemetry() -> None:
    client = Client()
    client.subscribe(client_instance_id=ZERO_UUID)
    assert client.machine.refusal is not None
    assert client.machine.step(10**9) == []


@pytest.mark.parametrize(
    ("error", "wait_ms"),
    [(NetworkError("gone"), RETRY_MS), (UnsupportedVersionError("no such API"), DEFAULT_INTERVAL_MS)],
)
def test_a_failed_question_is_asked_again_later(error: KafkaError, wait_ms: int) -> None:
    client = Client()
    client.machine.failed(client.one(0), error, 0)
    assert client.machine.next_deadline_ms() == wait_ms
    client.subscribe(wait_ms)


def test_an_error_in_the_answer_is_asked_again_later() -> None:
    client = Client()
    client.machine.answered(client.one(0), subscribed(error_code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID), 0, 0)
    assert client.machine.next_deadline_ms() == DEFAULT_INTERVAL_MS


def test_failed_authentication_ends_telemetry() -> None:
    client = Client()
    client.machine.failed(client.one(0), SaslAuthenticationError("wrong password"), 0)
    assert client.machine.step(10**9) == []


def test_a_lost_push_is_in_the_next_one() -> None:
    client = Client()
    client.subscribe(accepted_compression_types=[])
    client.producer.batch_sent("events", 9, 100, 0, 0)
    client.machine.failed(client.push(INTERVAL_MS), NetworkError("gone"), INTERVAL_MS)
    message: Any = client.push(2 * INTERVAL_MS).message
    points = read_metrics(message.metrics)[1]
    assert [each.value for each in points if each.metric == "org.apache.kafka.producer.record.send.total"] == [9]


def test_a_throttle_time_is_obeyed() -> None:
    client = Client()
    client.subscribe(throttle_time_ms=3 * INTERVAL_MS)
    assert client.machine.next_deadline_ms() == 3 * INTERVAL_MS


def test_close_pushes_once_more_and_marks_it() -> None:
    client = Client()
    client.subscribe()
    client.machine.close()
    assert not client.machine.is_closed
    assert client.machine.next_deadline_ms() == 0
    request = client.push(1)
    assert request.message.terminating  # type: ignore[attr-defined]
    assert not client.machine.is_closed
    client.refuse(request, 0, 2)
    assert client.machine.is_closed
    assert client.machine.step(10**9) == []


def test_close_waits_for_the_push_in_flight_and_then_pushes_the_last() -> None:
    client = Client()
    client.subscribe()
    request = client.push(INTERVAL_MS)
    client.machine.close()
    assert client.machine.step(INTERVAL_MS) == []
    assert not client.machine.is_closed
    client.machine.failed(request, NetworkError("gone"), INTERVAL_MS)
    last = client.push(INTERVAL_MS)
    assert last.message.terminating  # type: ignore[attr-defined]
    client.machine.failed(last, NetworkError("gone"), INTERVAL_MS)
    assert client.machine.is_closed, "the last push is not tried again"


def test_close_without_subscription_has_nothing_to_push() -> None:
    client = Client()
    asked = client.one(0)
    client.machine.close()
    assert client.machine.is_closed
    client.machine.answered(asked, subscribed(), 0, 0)
    assert client.machine.is_closed
    assert client.machine.step(10**9) == []


CODES = st.sampled_from([0, 0, 0, *(int(code) for code in ErrorCode)])
OUTCOME = st.one_of(
    st.builds(
        subscribed,
        error_code=CODES,
        client_instance_id=st.sampled_from([INSTANCE, INSTANCE, Uuid(b"x" * 16), ZERO_UUID]),
        push_interval_ms=st.integers(-(2**31), 2**31 - 1) | st.integers(0, 1_000),
        accepted_compression_types=st.lists(st.integers(-128, 127) | st.integers(0, 4), max_size=4),
        telemetry_max_bytes=st.integers(-(2**31), 2**31 - 1) | st.integers(0, 5_000),
        delta_temporality=st.booleans(),
        requested_metrics=st.lists(st.sampled_from(["*", "", "org.apache.kafka.producer.record"]), max_size=2),
        throttle_time_ms=st.integers(-1, 10_000),
    ),
    st.sampled_from([NetworkError("gone"), UnsupportedVersionError("no"), SaslAuthenticationError("no")]),
)


@given(st.lists(st.tuples(OUTCOME, CODES, st.integers(0, 50), st.integers(0, 1_000)), max_size=40), st.integers(0, 60))
def test_whatever_brokers_answer_it_is_never_busy_and_loses_no_record(
    outcomes: list[tuple[Any, int, int, int]], close_at: int
) -> None:
    """At most a push and a question per half interval; accepted deltas never exceed what was counted; close always ends."""
    client = Client()
    machine = client.machine
    now_ms, counted, accepted, deltas_ok = 0, 0, 0, True
    sent_ms: list[int] = []
    for number, (answer, code, records, took_ms) in enumerate(outcomes):
        if number == close_at:
            machine.close()
        client.producer.batch_sent("events", records, 100, 0, now_ms)
        counted += records
        deadline_ms = machine.next_deadline_ms()
        if deadline_ms is None:
            assert machine.step(10**12) == []
            break
        now_ms = max(now_ms, deadline_ms)
        (request,) = machine.step(now_ms)
        assert machine.next_deadline_ms() is None
        sent_ms.append(now_ms)
        now_ms += took_ms
        if isinstance(answer, KafkaError):
            machine.failed(request, answer, now_ms)
        elif isinstance(request.message, PushTelemetryRequest):
            subscription = machine.subscription
            assert subscription is not None
            message = request.message
            assert len(message.metrics) <= max(subscription.bytes_max, 0) or subscription.bytes_max <= 0
            content = decompress(Codec(message.compression_type), message.metrics, 10**7) if message.metrics else b""
            deltas_ok = deltas_ok and subscription.is_delta
            if not code:
                found = [each for each in read_metrics(content)[1] if each.metric.endswith("producer.record.send.total")]
                accepted += sum(int(each.value) for each in found)
                assert not deltas_ok or accepted <= counted
            machine.answered(request, PushTelemetryResponse(error_code=code), 0, now_ms)
        else:
            machine.answered(request, answer, 0, now_ms)
    for earlier_ms, later_ms in zip(sent_ms, sent_ms[2:], strict=False):
        assert later_ms - earlier_ms >= INTERVAL_MIN_MS // 2 or machine._is_closing
    machine.close()
    for request in machine.step(now_ms):
        machine.failed(request, NetworkError("gone"), now_ms)
    assert machine.is_closed
    assert machine.step(10**12) == []
