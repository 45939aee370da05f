"""A partition log on a simulated disk with its model, its owner's checkpoints, and kills, power losses and clean shutdowns.

The world plays the log's owner as the log's contract requires: it saves the recovery point after every flush and truncation,
and the log start offset now and then. `flushed` is what must survive a power loss.

`come_back` is the central step: after a kill, a power loss or a clean shutdown it loads the log and compares it with the model.
The model then drops what was allowed to be lost.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Any, TypeVar

from tests.model.partition_log import checks
from tests.model.partition_log.model import Batch, LogModel, Producers

from ottla.config.topic import LogConfig
from ottla.errors import CorruptFile
from ottla.log.compaction.compactor import Compactor
from ottla.log.compaction.plan import CleanerSettings
from ottla.log.names import LOG_SUFFIX, SNAPSHOT_SUFFIX, parse_segment_file_name
from ottla.log.partition_log import LogOptions, PartitionLog
from ottla.log.producers.producer_snapshot import ProducerSnapshots
from ottla.log.recovery.log_loader import LoadReport, load_log
from ottla.sim.disk import Folder, MemoryDisk
from ottla.sim.world import InPlaceHelpers, ManualClock

DIRECTORY = "/data"
FOLDER = "/data/topic-0"
T0 = 1_700_000_000_000
FOREVER = 1 << 62
EXPIRATION_MS = 3_600_000

T = TypeVar("T")


@dataclass
class Allowed:
    """What a start may find after a power loss or an operation that was cut short."""

    end_min: int
    start_max: int
    compacting: bool = False
    truncating_fully: bool = False
    holes: bool = False


class LogWorld:
    """One log, its model, and everything around them."""

    def __init__(self, random: Random, config: LogConfig) -> None:
        self.random = random
        self.config = config
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock(T0)
        self.disk = MemoryDisk(random, self.clock, self._pause)
        self.options = LogOptions(producer_expiration_ms=EXPIRATION_MS)
        self.model = LogModel()
        self.counts: Counter[str] = Counter()
        self.recovery_point = self.saved_start = self.saved_high_watermark = 0
        self.flushed = 0
        self.leader_epoch = 0
        self.has_gaps = random.random() < 0.7
        """Whether fetched batches have gaps, as those of a compacted leader log have."""
        self.flushes_rolls = random.random() < 0.6
        """Whether the owner flushes rolled segments at once. If not, a power loss may leave holes in what was not flushed."""
        self.numbers = count()
        """Makes every value unique, so that a wrong record is detected."""
        self.exact_lso = True
        self.epochs_sure_from = 0
        """Below this the leader epochs may be unknown: the log start offset moved up, and a crash moved it back."""
        self.pending: list[Batch] = []
        self.allowed: Allowed | None = None
        self.interleaved: list[Callable[[LogWorld], None]] = []
        """What others may do while an operation waits for the disk."""
        self.is_interleaving = self.is_nested = False
        self.indexes_sure_from = 0
        """Segments from here on have never been truncated or loaded: their indexes are the same as rebuilt ones."""
        self.disk.make_directory(FOLDER)
        self.run(self.disk.sync_directory("/"))
        self.run(self.disk.sync_directory(DIRECTORY))
        self.load(clean=False)

    def close_loop(self) -> None:
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    # -- the owner's part

    def load(self, clean: bool) -> LoadReport:
        self.log, report = self.run(self.load_async(clean))
        settings = CleanerSettings(
            dedupe_buffer_bytes=self.random.choice((24 * 12, 24 * 40, 24 * 1000)), dedupe_load_factor=0.9
        )
        self.compactor = Compactor(self.disk, self.clock, InPlaceHelpers(self.disk, self.clock), settings)
        self.compactor.inline_bytes_max = self.random.choice((0, FOREVER))
        return report

    async def load_async(self, clean: bool) -> tuple[PartitionLog, LoadReport]:
        return await load_log(
            self.disk,
            self.clock,
            FOLDER,
            self.config,
            self.options,
            recovery_point=self.recovery_point,
            log_start_offset=self.saved_start,
            clean_shutdown=clean,
        )

    def save_recovery_point(self) -> None:
        self.recovery_point = self.log.recovery_point

    def save_start(self) -> None:
        self.saved_start = self.log.log_start_offset

    # -- what is under way

    def intend(
        self,
        append: Iterable[Batch] = (),
        end_min: int | None = None,
        start_max: int | None = None,
        compacting: bool = False,
        truncating_fully: bool = False,
    ) -> None:
        """Announce an operation: if the world ends before `done`, all, a part or nothing of it may have happened."""
        model = self.model
        self.pending = list(append)
        self.allowed = Allowed(
            model.log_end if end_min is None else end_min,
            model.log_start if start_max is None else start_max,
            compacting,
            truncating_fully,
        )

    def done(self) -> None:
        self.pending, self.allowed = [], None

    def die(self, power_loss: bool) -> None:
        """End in the middle of the announced operation."""
        model = self.model
        allowed = self.allowed or Allowed(model.log_end, model.log_start)
        allowed = replace(allowed, end_min=min(allowed.end_min, model.log_end))
        for batch in self.pending:
            model.append(batch)
        self.done()
        self.kill(power_loss, allowed)

    @contextmanager
    def interleaving(self) -> Iterator[None]:
        """In this block, others may append and read whenever an operation waits for the disk."""
        self.is_interleaving = True
        try:
            yield
        finally:
            self.is_interleaving = False

    async def _pause(self) -> None:
        if self.is_interleaving and not self.is_nested and self.interleaved and self.random.random() < 0.1:
            allowed = self.allowed
            self.is_nested = True
            try:
                self.random.choice(self.interleaved)(self)  # if this fails, its batch stays pending
                self.counts["interleaved"] += 1
            finally:
                self.is_nested = False
                self.allowed = allowed

    # -- ends

    def kill(self, power_loss: bool = False, allowed: Allowed | None = None) -> None:
        """The process dies, or the machine does; then the next start."""
        if self.random.random() < 0.5:
            self.saved_high_watermark = self.model.high_watermark
        # Also a segment that was just renamed counts: the rename may be undone.
        may_leave_holes = any(base > self.flushed for base in self._offsets_of_files(LOG_SUFFIX, in_use=False))
        if may_leave_holes and allowed is not None and (allowed.compacting or allowed.truncating_fully):
            power_loss = False  # one thing at a time
        lost_before = self.disk.counts["lost"] + self.disk.counts["torn"] + self.disk.counts["prefix"]
        self.disk = self.disk.crash(power_loss)
        if allowed is None:
            allowed = Allowed(self.model.log_end, self.model.log_start)
        if power_loss:
            self.counts["power losses"] += 1
            allowed = replace(allowed, end_min=min(allowed.end_min, self.flushed), holes=may_leave_holes)
            if self.disk.counts["lost"] + self.disk.counts["torn"] + self.disk.counts["prefix"] > lost_before:
                self.counts["power losses with damage"] += 1
        else:
            self.counts["kills"] += 1
        self.come_back(clean=False, allowed=allowed)

    def restart(self, power_loss: bool = False) -> None:
        """A clean shutdown, perhaps with a power loss right after it, and the next start."""
        self.run(self.log.close())
        checks.check_rebuilt(self.disk, FOLDER, self.log, self.indexes_sure_from)
        checks.same("the recovery point of a closed log", self.log.recovery_point, self.model.log_end)
        self.save_recovery_point()
        self.save_start()
        self.flushed = self.model.log_end
        self.saved_high_watermark = self.model.high_watermark
        self.disk = self.disk.crash(power_loss)
        self.counts["clean restarts"] += 1
        self.come_back(clean=True, allowed=Allowed(self.model.log_end, self.model.log_start))

    def come_back(self, clean: bool, allowed: Allowed) -> None:
        snapshots = self._offsets_of_files(SNAPSHOT_SUFFIX)
        if not clean and self.random.random() < 0.25:
            self._die_while_loading()
        report = self.load(clean)
        self.counts["loads"] += 1
        if report.bytes_cut:
            self.counts["torn tails cut"] += 1
        model, log = self.model, self.log
        self._check_ends(report, clean, allowed)
        memory_start, model.log_start = model.log_start, log.log_start_offset
        if allowed.holes and self._has_hole(allowed):
            self.counts["power losses that left holes"] += 1
            self._start_over()
            return
        self._check_records(allowed)
        if allowed.truncating_fully:
            self._start_over()
            return
        if log.log_end_offset < model.log_end:
            self.counts["loads that lost records"] += 1
        model.high_watermark = log.high_watermark
        model.cut(log.log_end_offset)
        model.log_start = log.log_start_offset
        model.forget_below(log.segments.first.base_offset)
        self._check_epochs(memory_start)
        self._settle_producers(snapshots, model.log_start)
        self.flushed = min(self.flushed, model.log_end)
        self.indexes_sure_from = model.log_end
        self.saved_start, self.recovery_point = log.log_start_offset, log.recovery_point
        self.set_high_watermark(min(max(self.saved_high_watermark, model.log_start), model.log_end))
        self.exact_lso = False
        self.check_everything()

    def _has_hole(self, allowed: Allowed) -> bool:
        """Whether a power loss took unflushed batches and left later ones, as it may in several segments."""
        actual = checks.read_files(self.log)
        end, first = self.log.log_end_offset, self.log.segments.first.base_offset
        expected = [batch for batch in self.model.batches if first <= batch.base_offset and batch.last_offset < end]
        kept = set(actual)
        lost = [batch for batch in expected if batch not in kept]
        checks.check_batches(actual, [batch for batch in expected if batch in kept])
        assert all(batch.base_offset >= allowed.end_min for batch in lost), f"flushed batches are gone: {lost}"
        checks.check_indexes(self.log)
        return bool(lost)

    def _start_over(self) -> None:
        """Continue with an empty log: where records are missing, the producers' states are unknown.

        The owner of a log does the same if it died while it truncated the log fully.
        """
        end = self.log.log_end_offset
        self.run(self.log.truncate_fully_and_start_at(end))
        self.run(self.compactor.truncated(self.log))
        self.model.restart_at(end, end)
        self.saved_start = self.recovery_point = self.flushed = end
        self.epochs_sure_from, self.indexes_sure_from = 0, end
        self.check_everything()

    def _die_while_loading(self) -> None:
        """Cut a start itself short, at any of its steps: the next one must find the same."""
        self.disk.crash_before(self.random.randrange(12))
        try:
            self.run(self.load_async(clean=False))
        except Exception:
            if not self.disk.crashed:
                raise
            self.counts["loads cut short"] += 1
        self.disk = self.disk.crash(power_loss=False)

    def _check_ends(self, report: LoadReport, clean: bool, allowed: Allowed) -> None:
        log, model = self.log, self.model
        if not allowed.truncating_fully:
            end = log.log_end_offset
            lost = [batch for batch in model.batches if end <= batch.last_offset < allowed.end_min]
            assert not lost, f"the log ends at {end}, it lost {len(lost)} batches from {lost[0]} on: {report}"
            assert end <= model.log_end, f"the log ends at {end}, it was never past {model.log_end}: {report}"
            if end < allowed.end_min:
                # A truncation may end in a gap that compaction left: a start finds the end of the last batch.
                self.counts["ends forgotten in a gap"] += 1
            start = log.log_start_offset
            assert start >= self.saved_start, f"the log starts at {start}, its checkpoint said {self.saved_start}: {report}"
            # A power loss may also take the first segments if they were never flushed.
            lost = [b for b in model.batches if allowed.start_max <= b.base_offset < min(start, allowed.end_min)]
            assert not lost, f"the log starts at {start}, it lost {len(lost)} batches from {lost[0]} on: {report}"
        checks.same("report.log_end_offset", report.log_end_offset, log.log_end_offset)
        if clean:
            checks.same("the recovery point after a clean start", log.recovery_point, log.log_end_offset)

    def _check_records(self, allowed: Allowed) -> None:
        """The files hold the same batches as before, up to where the log ends now."""
        model = self.model
        actual = checks.read_files(self.log)
        end, first = self.log.log_end_offset, self.log.segments.first.base_offset
        expected = [batch for batch in model.batches if first <= batch.base_offset and batch.last_offset < end]
        if expected and actual and actual[0].base_offset < expected[0].base_offset:
            # A power loss may undo the removal of a segment before the log's start.
            actual = [batch for batch in actual if batch.base_offset >= min(expected[0].base_offset, model.log_start)]
        if allowed.truncating_fully:
            checks.check_batches(actual, expected[: len(actual)])
        elif allowed.compacting:
            checks.check_compacted(expected, actual, model)
            model.batches = actual
        else:
            checks.check_batches(actual, expected)

    def _check_epochs(self, memory_start: int) -> None:
        """A crash may lose epochs below the log start offset it had, and no others."""
        model = self.model
        actual = self.log.epochs.entries
        sure_from = max(memory_start, self.epochs_sure_from, model.log_start)
        for offset in [batch.base_offset for batch in model.history]:
            if sure_from <= offset < model.log_end:
                checks.same(f"the leader epoch of offset {offset}", self.log.epochs.epoch_for(offset), model.epoch_for(offset))
        self.epochs_sure_from = max(memory_start, self.epochs_sure_from) if memory_start < model.log_end else 0
        model.epochs = actual

    # -- producers

    def _offsets_of_files(self, suffix: str, in_use: bool = True) -> list[int]:
        """The offsets in the names of files with `suffix`, also on a failed disk."""
        folder = self.disk.names.find(FOLDER)
        assert isinstance(folder, Folder)
        names = [parse_segment_file_name(name) for name in sorted(folder.entries)]
        return [name.base_offset for name in names if name and name.suffix == suffix and not (name.state and in_use)]

    def settle_producers(self) -> None:
        """After a truncation: producers are those of a snapshot and the remaining records, also those before the log start."""
        self._settle_producers(self._offsets_of_files(SNAPSHOT_SUFFIX), self.log.segments.first.base_offset)

    def _settle_producers(self, snapshots: list[int], replay_start: int) -> None:
        log, model = self.log, self.model
        actual = checks.producers_of(log.producers.producers.values())
        now_ms = self.clock.now_ms()
        wanted = {f"offset {replay_start}": model.producers_in_log(replay_start, model.log_end)}
        # Recovery writes snapshots at the ends of segments, and continues from them.
        for offset in sorted({*snapshots, *log.segments.base_offsets, *self._offsets_of_files(SNAPSHOT_SUFFIX)}):
            if replay_start <= offset <= model.log_end:
                wanted[f"a snapshot at {offset}"] = model.producers_from(offset, now_ms, EXPIRATION_MS)
            if offset <= model.log_start:
                wanted[f"the segment at {offset}"] = model.producers_in_log(offset, model.log_end)
        # Producers in such a snapshot expire when it is read again.
        wanted |= {f"{start}, expired": self._without_expired(producers) for start, producers in wanted.items()}
        differences = {start: checks.reload_difference(actual, each, model) for start, each in wanted.items()}
        if all(differences.values()):
            start, difference = min(differences.items(), key=lambda item: len(item[1]))
            raise AssertionError(f"the producers are not those of the log; the nearest are from {start}: {difference}")
        model.adopt(actual)
        self._learn_snapshots()

    def _learn_snapshots(self) -> None:
        """A start may write snapshots with less about a producer than the previous process knew."""
        model = self.model
        files = ProducerSnapshots(self.disk, FOLDER)
        for offset in files.offsets:
            if offset >= model.log_end:
                continue
            try:
                found = checks.producers_of(files.read(offset))
            except CorruptFile:
                continue
            known = model.producers_at(offset)
            if not checks.is_snapshot_of(found, known):
                starts = [model.log_start, *(base for base in self.log.segments.base_offsets if base <= model.log_start)]
                could_be = [known, *(model.producers_in_log(start, offset) for start in starts)]
                now_ms = self.clock.now_ms()
                earlier = {*files.offsets, *self.log.segments.base_offsets, *model.known_states}
                could_be += [model.producers_from(at, now_ms, EXPIRATION_MS, offset) for at in earlier if at < offset]
                fits = [checks.is_snapshot_of(self._without_expired(found), self._without_expired(each)) for each in could_be]
                wrong = {key: (found.get(key), known.get(key)) for key in found.keys() | known.keys()}
                wrong = {
                    key: (have, want) for key, (have, want) in wrong.items() if not checks.is_snapshot_of({0: have}, {0: want})
                }
                assert any(fits), f"the snapshot at {offset} never was the state (found and expected): {wrong}"
                model.known_states[offset] = found

    def _without_expired(self, producers: Producers) -> Producers:
        now_ms = self.clock.now_ms()
        return {
            producer_id: producer
            for producer_id, producer in producers.items()
            if producer.transaction_first is not None or now_ms - producer.last_timestamp < EXPIRATION_MS
        }

    # -- comparing

    def set_high_watermark(self, offset: int) -> None:
        if offset < self.model.high_watermark:
            self.exact_lso = False
        self.model.high_watermark = self.log.update_high_watermark(offset)
        checks.same("high watermark", self.model.high_watermark, offset)

    def check_step(self) -> None:
        checks.check_offsets(self.log, self.model, self.exact_lso)

    def check_everything(self) -> None:
        """Compare everything."""
        log, model = self.log, self.model
        self.check_step()
        checks.check_batches(checks.read_back(log, self.random.choice((100, 1000, 100_000))), model.visible())
        checks.check_epochs(log, model)
        checks.check_producers(log, model)
        checks.check_committed(log, model)
        checks.check_aborted(log, model, model.log_start, model.log_end)
        checks.check_indexes(log)
        self.counts["full comparisons"] += 1
