"""The loop of `ottla verifiable-producer`: sends counted numbers, and prints an event for each that was stored or failed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial

from ottla.cli.common.clients import ClientConfig
from ottla.cli.perf.command import Pace
from ottla.cli.verifiable.events import Events, java_class
from ottla.cli.verifiable.stopping import stopping
from ottla.client.producer.asynchronous import Producer
from ottla.client.world import ClientWorld
from ottla.client_core.producer.delivery import RecordMetadata
from ottla.errors import AuthenticationError, KafkaError

TURN_RECORDS = 100
"""How many records are sent before the loop gets a turn."""


@dataclass(frozen=True, slots=True)
class ProducePlan:
    """What to send."""

    topic: str
    messages: int = -1
    """How many; negative: until a signal."""
    throughput: int = -1
    """Records per second; negative: no limit."""
    value_prefix: int | None = None
    repeating_keys: int | None = None
    create_time_ms: int | None = None
    """The timestamp of the first record; None: the time of sending."""


class VerifiableProducer:
    """One run."""

    def __init__(self, plan: ProducePlan, made: ClientConfig, world: ClientWorld) -> None:
        self._plan = plan
        self._producer: Producer[bytes, bytes] = Producer(config=made.config, world=world, **made.login)
        self._sending: asyncio.Task[None] | None = None
        self._create_time_ms = plan.create_time_ms
        self.sent = self.acked = 0

    async def run(self) -> int | None:
        """Send until all is sent or a signal comes; returns the exit code."""
        self._start_ms = _now_ms()
        with stopping(self._stop) as stop:
            self._events = Events(asyncio.get_running_loop(), self._stop)
            self._sending = asyncio.ensure_future(self._send_all())
            try:
                await asyncio.wait({self._sending})
                if not self._sending.cancelled():
                    self._sending.result()
            finally:
                await self._close()
        return stop.exit_code if stop.signal is not None else 1 if self.acked < self.sent else None

    def _stop(self) -> None:
        if self._sending is not None:
            self._sending.cancel()

    async def _send_all(self) -> None:
        plan = self._plan
        self._events.print("startup_complete")
        self._events.flush()
        start_s = time.monotonic()
        pace = Pace(plan.throughput, start_s)
        number = 0
        while plan.messages < 0 or number < plan.messages:
            due = pace.due(number, time.monotonic())
            if due == 0:
                await asyncio.sleep(pace.pause_s(number, time.monotonic()))
                continue
            await self._send(number)
            number += 1
            if number % TURN_RECORDS == 0:
                await asyncio.sleep(0)

    async def _send(self, number: int) -> None:
        plan = self._plan
        value = str(number) if plan.value_prefix is None else f"{plan.value_prefix}.{number}"
        key = None if plan.repeating_keys is None else str(number % plan.repeating_keys)
        self.sent += 1
        try:
            await self._producer.send(
                plan.topic,
                value.encode(),
                None if key is None else key.encode(),
                timestamp=self._next_timestamp(),
                on_delivery=partial(self._delivered, key, value),
            )
        except KafkaError as error:
            self._failed(key, value, error)
            if isinstance(error, AuthenticationError):
                raise  # all others would fail as quickly, without end
        except asyncio.CancelledError:
            self.sent -= 1  # it was still waiting for metadata or memory
            raise

    def _next_timestamp(self) -> int | None:
        """Timestamps drift apart by the time since the start, as those of Kafka's tool."""
        current = self._create_time_ms
        if current is not None:
            self._create_time_ms = current + _now_ms() - self._start_ms
        return current

    def _delivered(self, key: str | None, value: str, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        if error is not None or metadata is None:
            self._failed(key, value, error or KafkaError(-1, "no result"))
            return
        self.acked += 1
        place = {"offset": metadata.offset, "topic": metadata.topic, "partition": metadata.partition}
        self._events.print("producer_send_success", key=key, value=value, **place)

    def _failed(self, key: str | None, value: str, error: KafkaError) -> None:
        what = {"exception": java_class(error), "message": str(error)}
        self._events.print("producer_send_error", topic=self._plan.topic, key=key, value=value, **what)

    async def _close(self) -> None:
        """Wait for what is on its way, then print the closing events."""
        await self._producer.close()
        self._events.print("shutdown_complete")
        elapsed_ms = max(1, _now_ms() - self._start_ms)
        self._events.print(
            "tool_data",
            sent=self.sent,
            acked=self.acked,
            target_throughput=self._plan.throughput,
            avg_throughput=1000 * (self.acked / elapsed_ms),
        )
        self._events.flush()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
