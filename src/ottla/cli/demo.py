"""`make demo`: a log is written, compacted, torn, recovered and looked at, on the real disk, in a few seconds.

Everything shown is done by the storage engine itself; nothing is staged but the data. Without a folder to write to, a temporary
one is used and removed again.
"""

import asyncio
import logging
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import perf_counter

import click
from rich.console import Console
from rich.table import Table

from ottla.cli.dump_log.decoders import find_decoder, record_decoder
from ottla.cli.dump_log.kinds import dump_file
from ottla.cli.dump_log.options import Options
from ottla.cli.dump_log.table import TableRenderer
from ottla.config.topic import LogConfig
from ottla.env.real import ProcessHelpers, RealClock, RealDisk, ThreadWorkers
from ottla.errors import OttlaError
from ottla.log.compaction.compactor import Compactor
from ottla.log.loading import LoadReport, load_log
from ottla.log.partition_log import PartitionLog
from ottla.log.segment import Segment
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.reader import read_records
from ottla.records.record import Record

ACCOUNTS = 5_000
BATCH_RECORDS = 100
BATCHES = 600
LEADER_EPOCH = 0
ROWS_SHOWN = 12
CONFIG = LogConfig(
    segment_bytes=1 << 20,
    cleanup_policy=("compact",),
    min_cleanable_dirty_ratio=0.1,
    file_delete_delay_ms=0,
)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a log holds."""

    segments: int
    size_bytes: int
    records: int
    latest: dict[bytes, bytes | None]
    """Key → its last value."""


def batches_of(segment: Segment) -> Iterator[BatchView]:
    return iterate_batches(segment.file.read(0, segment.size))


def contents_of(log: PartitionLog) -> Contents:
    records, latest = 0, dict[bytes, bytes | None]()
    for segment in log.segments:
        for batch in batches_of(segment):
            for record in read_records(batch):
                records += 1
                latest[record.key or b""] = record.value
    return Contents(len(log.segments), log.size_bytes, records, latest)


class Demo:
    """The steps, and where they are told."""

    def __init__(self, console: Console, folder: Path) -> None:
        self.console = console
        self.folder = folder / "accounts-0"
        self.disk = RealDisk(ThreadWorkers())
        self.clock = RealClock()

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)

    async def open(self, clean_shutdown: bool = True) -> tuple[PartitionLog, LoadReport]:
        log, report = await load_log(self.disk, self.clock, str(self.folder), CONFIG, clean_shutdown=clean_shutdown)
        log.update_high_watermark(log.log_end_offset)
        return log, report

    async def run(self) -> None:
        log, _ = await self.open()
        if log.log_end_offset:
            raise OttlaError(f"{self.folder} already holds a log. Give the demo an empty folder, or none")
        self.write(log)
        before = contents_of(log)
        after = await self.compact(log, before)
        self.show_sizes(log, before, after)
        await log.close()
        await self.tear_and_recover(after)
        self.look()

    def write(self, log: PartitionLog) -> None:
        """Updates of few keys, so that most records are soon out of date; now and then an account is closed (no value)."""
        self.say(f"[bold]1. Write[/] {BATCHES * BATCH_RECORDS:,} updates of up to {ACCOUNTS:,} accounts")
        random = Random(4)
        batches = [make_batch(random, number, self.clock.now_ms()) for number in range(BATCHES)]
        size_bytes = sum(len(batch) for batch in batches)
        started_s = perf_counter()
        for batch in batches:
            log.append_as_leader(batch, LEADER_EPOCH)
        took_s = perf_counter() - started_s
        log.update_high_watermark(log.log_end_offset)
        log.roll()
        self.say(
            f"   {size_bytes / 1e6:.1f} MB in {BATCHES} batches with every codec of Kafka's, in {took_s * 1000:.0f} ms; "
            f"{len(log.segments)} segments of up to {CONFIG.segment_bytes >> 20} MiB"
        )

    async def compact(self, log: PartitionLog, before: Contents) -> Contents:
        self.say("\n[bold]2. Compact[/] in a helper process: the last value of every key stays")
        compactor = Compactor(self.disk, self.clock, ProcessHelpers())
        started_s = perf_counter()
        passes = 0
        while (stats := await compactor.run_once({log.partition: log})) is not None:
            passes += 1
            self.say(f"   pass {passes}: {stats.records_read:,} records read, {stats.records_written:,} kept")
        await log.delete_due_files()
        after = contents_of(log)
        if after.latest != before.latest:
            raise OttlaError("compaction changed the last value of a key: this is a bug, please report it")
        self.say(
            f"   {perf_counter() - started_s:.1f} s; all {len(after.latest):,} keys still have their last value, at its offset"
        )
        return after

    def show_sizes(self, log: PartitionLog, before: Contents, after: Contents) -> None:
        table = Table(box=None, padding=(0, 2), pad_edge=False)
        for heading in ("", "segments", "records", "bytes"):
            table.add_column(heading, justify="left" if not heading else "right")
        for name, contents in (("before", before), ("after", after)):
            table.add_row(f"   {name}", str(contents.segments), f"{contents.records:,}", f"{contents.size_bytes:,}")
        table.add_row("   left", "", f"{after.records / before.records:.1%}", f"{after.size_bytes / before.size_bytes:.1%}")
        self.console.print(table)

    async def tear_and_recover(self, expected: Contents) -> None:
        """Leave half a batch at the log's end, as a power loss might, and open it without the mark of a clean shutdown."""
        last = max(self.folder.glob("*.log"))
        torn = make_batch(Random(5), 0, self.clock.now_ms())
        with open(last, "ab") as file:
            file.write(torn[: len(torn) // 2])
        self.say(f"\n[bold]3. Tear[/] half a batch is left at the end of {last.name}; open the log again")
        log, report = await self.open(clean_shutdown=False)
        for note in report.notes:
            self.say(f"   {note.replace(str(self.folder) + '/', '')}")
        if contents_of(log).latest != expected.latest:
            raise OttlaError("recovery lost a record: this is a bug, please report it")
        self.say(f"   recovered up to offset {log.log_end_offset:,}, nothing else is gone")
        await log.close()

    def look(self) -> None:
        self.say("\n[bold]4. Look[/] at some records that are left, as `ottla dump-log` shows them")
        path = str(min(self.folder.glob("*.log"), key=lambda log: (log.stat().st_size == 0, log.name)))
        text = find_decoder("string")
        assert text is not None
        renderer = TableRenderer(self.console)
        renderer.start_file(path)
        rows = dump_file(self.disk, path, Options(deep_iteration=True, decoder=record_decoder(text, text)))
        for _, row in zip(range(ROWS_SHOWN), rows, strict=False):
            renderer.show(row)
        renderer.finish()


def make_batch(random: Random, number: int, now_ms: int) -> bytearray:
    """A batch as a producer would send it, with each codec in turn."""
    records = []
    for index in range(BATCH_RECORDS):
        account = int(ACCOUNTS * random.random() ** 3)  # a few accounts are busy, many are not
        balance = b'{"account": %d, "balance": %d, "note": "update %d"}' % (account, random.randrange(10**6), number)
        value = None if random.random() < 0.01 else balance
        records.append(Record(index, now_ms, b"account-%d" % account, value, (("source", b"demo"),)))
    return build_batch(records, codec=Codec(number % len(Codec)))


@click.command()
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
def demo(folder: Path | None) -> None:
    """Write, compact, tear, recover and show a log. FOLDER keeps it; without one it is written to a temporary folder."""
    console = Console()
    logging.getLogger("ottla").addHandler(logging.NullHandler())  # what the engine would log is told below
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(Demo(console, folder.resolve()).run())
        console.print(f"\nThe log is in {folder}. Look at it with: ottla dump-log {folder}", highlight=False)
        return
    with tempfile.TemporaryDirectory(prefix="ottla-demo-") as temporary:
        asyncio.run(Demo(console, Path(temporary)).run())


def main() -> None:
    try:
        demo.main(standalone_mode=False)
    except click.ClickException as mistake:
        mistake.show()
        sys.exit(mistake.exit_code)
    except (OttlaError, OSError) as error:
        click.echo(f"demo: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
