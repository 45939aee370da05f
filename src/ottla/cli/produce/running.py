"""The loop of `ottla produce`: reads lines, chooses partitions, and waits until all records are stored."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.cli.common.cluster import Cluster, refusal
from ottla.cli.common.output import is_typed
from ottla.cli.produce.batches import RECORD_OVERHEAD_BYTES, Encoder
from ottla.cli.produce.input import LineInput
from ottla.cli.produce.lines import LineReader
from ottla.cli.produce.options import ProduceOptions
from ottla.cli.produce.partitioner import StickyPartition, partition_of_key
from ottla.cli.produce.sender import Sender, SendFailed, Stored
from ottla.errors import OttlaError
from ottla.errors.texts import counted
from ottla.records.kernels import Row
from ottla.wire.apis import ApiKey
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

PROGRESS_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Produced:
    """The number of stored records, and what each partition stored."""

    records: int
    partitions: dict[int, Stored]


async def produce_lines(cluster: Cluster, options: ProduceOptions, reader: LineReader, fd: int, prompt: str) -> Produced:
    """Read lines until the input ends, and return when all of their records are stored."""
    encoder = Encoder(options.codec, None, *(await _producer_id(cluster, options)))
    sender = Sender(cluster, options, encoder)
    await sender.find_topic()
    if options.partition is not None and options.partition not in sender.partitions:
        raise OttlaError(f"topic {options.topic} has no partition {options.partition}, only 0 to {len(sender.partitions) - 1}")
    spreader = Spreader(sender, options)
    progress = Progress(sender)
    source = LineInput(fd)
    try:
        _show(prompt)
        while (lines := await source.next_lines()) is not None:
            for piece in [[line] for line in lines] if options.sync else [lines]:
                rows = reader.rows(piece, time.time_ns() // 1_000_000)
                spreader.add(rows, sum(map(len, piece)) + RECORD_OVERHEAD_BYTES * len(rows))
                if options.sync or reader.failure is not None:
                    await sender.wait_below(0)
                if reader.failure is not None:
                    raise reader.failure
            if not source.has_more_now and not (options.linger_ms and await source.wait(options.linger_ms)):
                sender.let_go()
            await sender.wait_below(options.buffer_bytes)
            progress.show()
            _show(prompt)
        _show("\n" if prompt else "")
        await sender.wait_below(0)
    except OttlaError as error:
        if sender.stored_records:
            raise SendFailed(f"{error}. Stored before that: {counted(sender.stored_records, 'record')}") from None
        raise
    finally:
        progress.finish()
        await sender.close()
    return Produced(sender.stored_records, dict(sorted(sender.stored.items())))


async def _producer_id(cluster: Cluster, options: ProduceOptions) -> tuple[int, int]:
    """(producer id, epoch) for idempotent sending; (-1, -1) if it is turned off or the cluster does not support it."""
    if not options.idempotent or not (await cluster.any_link()).versions.has(ApiKey.INIT_PRODUCER_ID):
        return -1, -1

    async def attempt() -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        response: InitProducerIdResponse = await cluster.ask_any(request)
        if response.error_code:
            raise refusal(response.error_code, "the cluster gave no producer id")
        return response.producer_id, response.producer_epoch

    return await cluster.retrying(attempt)


class Spreader:
    """Distributes rows to partitions."""

    def __init__(self, sender: Sender, options: ProduceOptions) -> None:
        self._sender = sender
        self._options = options
        self._sticky = StickyPartition([options.partition] if options.partition is not None else sender.available)
        self._count = len(sender.partitions)

    def add(self, rows: Sequence[Row], size_bytes: int) -> None:
        """Add rows in order. They take about `size_bytes` in total."""
        if self._options.partition is None and self._count > 1 and any(row[1] is not None for row in rows):
            by_partition: dict[int, list[Row]] = {}
            for row in rows:
                key = row[1]
                partition = self._sticky.current if key is None else partition_of_key(key, self._count)
                by_partition.setdefault(partition, []).append(row)
            for partition, group in by_partition.items():
                self._add_in_pieces(partition, group, size_bytes * len(group) // len(rows))
        else:
            self._add_in_pieces(None, rows, size_bytes)

    def _add_in_pieces(self, partition: int | None, rows: Sequence[Row], size_bytes: int) -> None:
        """Add rows in pieces that fit into a batch; to the sticky partition if `partition` is None."""
        pieces = max(1, min(len(rows), size_bytes // self._options.batch_bytes))
        step = -(-len(rows) // pieces) or 1
        for start in range(0, len(rows), step):
            piece = rows[start : start + step]
            target = self._sticky.current if partition is None else partition
            if self._sender.add(target, piece, size_bytes * len(piece) // len(rows)) and target == self._sticky.current:
                self._sticky.move_on()


class Progress:
    """A progress line on standard error, shown if it is a terminal and the input is not."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._is_shown = sys.stderr.isatty() and not is_typed()
        self._start_s = self._last_s = time.monotonic()
        self._has_line = False

    def show(self) -> None:
        now_s = time.monotonic()
        if not self._is_shown or now_s - self._last_s < PROGRESS_EVERY_S:
            return
        self._last_s = now_s
        seconds = now_s - self._start_s
        records, stored_bytes = self._sender.stored_records, self._sender.stored_bytes
        sys.stderr.write(
            f"\r{counted(records, 'record')}, {records / seconds:,.0f}/s, {stored_bytes / seconds / 1e6:,.1f} MB/s   "
        )
        sys.stderr.flush()
        self._has_line = True

    def finish(self) -> None:
        if self._has_line:
            sys.stderr.write("\n")


def _show(prompt: str) -> None:
    if prompt:
        sys.stdout.write(prompt)
        sys.stdout.flush()
