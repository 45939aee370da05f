"""Producer settings for tests of the machines: Kafka's defaults, small where a test must reach a limit."""

from typing import Any

from ottla.config.client import ProducerSettings, producer_settings


def small_settings(**changes: Any) -> ProducerSettings:
    """Settings of a producer with batches of 200 bytes and 2,000 bytes of memory."""
    given: dict[str, Any] = {
        "batch_size": 200,
        "buffer_memory": 2_000,
        "linger_ms": 5,
        "delivery_timeout_ms": 10_000,
        "request_timeout_ms": 2_000,
        "max_request_size": 600,
        "retry_backoff_ms": 100,
        **changes,
    }
    return producer_settings("localhost:9092", None, given)
