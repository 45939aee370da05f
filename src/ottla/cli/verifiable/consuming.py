"""The loop of `ottla verifiable-consumer`: reads as a member of a group, and prints an event for each step.

After each poll its records are committed, unless automatic commits are on. A signal ends the poll; a commit that it interrupts
is made again, since its records were shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ottla.cli.common.clients import ClientConfig
from ottla.cli.verifiable.events import Events
from ottla.cli.verifiable.stopping import stopping
from ottla.client.consumer.asynchronous import Consumer
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.world import ClientWorld
from ottla.errors import FencedInstanceIdError, KafkaError, WakeupError
from ottla.ids import TopicPartition

Bytes = bytes | None
Records: TypeAlias = "dict[TopicPartition, list[ConsumerRecord[Bytes, Bytes]]]"


@dataclass(frozen=True, slots=True)
class ConsumePlan:
    """What to read."""

    topic: str
    messages: int = -1
    """How many; negative: until a signal."""
    poll_records: int = 500
    """max.poll.records."""
    is_verbose: bool = False
    commits: bool = True
    """Whether to commit after each poll."""


class VerifiableConsumer:
    """One run."""

    def __init__(self, plan: ConsumePlan, made: ClientConfig, world: ClientWorld) -> None:
        self._plan = plan
        self._consumer: Consumer[Bytes, Bytes] = Consumer(config=made.config, world=world, **made.login)
        self._consumed = 0

    async def run(self) -> int | None:
        """Read until enough was read or a signal comes; returns the exit code."""
        with stopping(self._requested) as stop:
            self._events = Events(asyncio.get_running_loop(), self._consumer.wakeup)
            try:
                await self._read_all()
            except WakeupError:
                pass  # a signal, or an output without a reader
            finally:
                await self._consumer.close()
                self._events.print("shutdown_complete")
                if stop.signal is None:
                    self._events.print("shutdown_requested")  # Kafka's tool prints it after a regular end, too
                self._events.flush()
        return stop.exit_code

    def _requested(self) -> None:
        self._events.print("shutdown_requested")
        self._consumer.wakeup()

    async def _read_all(self) -> None:
        plan, events = self._plan, self._events
        events.print("startup_complete")
        events.flush()
        self._consumer.subscribe(
            [plan.topic],
            on_assigned=lambda partitions: events.print("partitions_assigned", partitions=_places(partitions)),
            on_revoked=lambda partitions: events.print("partitions_revoked", partitions=_places(partitions)),
        )
        while plan.messages < 0 or self._consumed < plan.messages:
            left = plan.poll_records if plan.messages < 0 else min(plan.poll_records, plan.messages - self._consumed)
            found = await self._consumer.batches(None, left)
            if not found:
                continue
            offsets = self._show(found)
            if plan.commits:
                await self._commit(offsets)

    def _show(self, found: Records) -> dict[TopicPartition, int]:
        """Print the events of a poll; returns the offsets to commit."""
        summaries: list[dict[str, Any]] = []
        for (topic, partition), records in found.items():
            place = {"topic": topic, "partition": partition}
            if self._plan.is_verbose:
                for each in records:
                    self._events.print("record_data", key=_text(each.key), value=_text(each.value), **place, offset=each.offset)
            offsets = {"minOffset": records[0].offset, "maxOffset": records[-1].offset}
            summaries.append({**place, "count": len(records), **offsets})
        count = sum(map(len, found.values()))
        self._consumed += count
        self._events.print("records_consumed", count=count, partitions=summaries)
        return {each: records[-1].offset + 1 for each, records in found.items()}

    async def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        error = None
        try:
            await self._consumer.commit(offsets)
        except WakeupError:
            await self._commit(offsets)  # there is one wakeup at most
            raise
        except FencedInstanceIdError:
            raise
        except KafkaError as failure:
            error = failure
        shown = [{"topic": topic, "partition": index, "offset": offset} for (topic, index), offset in offsets.items()]
        failed = {} if error is None else {"error": str(error)}
        self._events.print("offsets_committed", offsets=shown, **failed, success=error is None)


def _places(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": index} for topic, index in sorted(partitions)]


def _text(data: Bytes) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
