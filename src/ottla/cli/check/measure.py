"""`ottla check --measure`: what an fsync takes in each log directory, and how fast it is written in order.

The file it writes has no name by then: nothing stays, also after a kill.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from ottla.broker.checks.disks import dirty_pages
from ottla.broker.checks.findings import Finding, Level, Subject, fine, size_text, unknown
from ottla.broker.checks.network import NETSTAT, overflows
from ottla.env.real.file import sync_descriptor
from ottla.env.real.system import RealSystem
from ottla.env.system import CannotTell, Wanted

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig
    from ottla.env.system import Directory, SystemFacts

FLUSHES, FLUSH_BYTES = 200, 4096
BLOCK_BYTES = 1 << 20
SEQUENTIAL_S = 4.0
SEQUENTIAL_BYTES_MAX = 2 << 30
FLUSHES_S_MAX = 6.0
P99_MS_MAX, P99_MS_MAX_ROTATING = 5.0, 30.0
TOO_FAST_MS = 0.02
"""No device answers a flush faster: it has not been asked."""


class DiskSpeed(NamedTuple):
    """What was measured in one directory."""

    fsync_ms: tuple[float, ...]
    """Sorted."""
    bytes_per_s: float

    def percentile(self, share: float) -> float:
        return self.fsync_ms[min(len(self.fsync_ms) - 1, int(share * len(self.fsync_ms)))]


def measure_disks(facts: SystemFacts, config: BrokerConfig) -> list[Finding]:
    """Measure every usable log directory, with a progress bar on a terminal, and say what it means."""
    found: list[Finding] = []
    usable = [each for each in facts.directories if not each.problem]
    slowest: float | None = None
    hidden = not sys.stderr.isatty()
    with click.progressbar(length=100 * len(usable), label="measuring", file=sys.stderr, hidden=hidden) as bar:
        for each in usable:
            try:
                speed = measure(each.existing, each.free_bytes // 4, lambda: bar.update(1))
            except OSError as error:
                found.append(unknown("fsync", f"{each.path} was not measured: {(error.strerror or str(error)).lower()}"))
                continue
            found += judge(each, speed)
            slowest = speed.bytes_per_s if slowest is None else min(slowest, speed.bytes_per_s)
    if slowest is not None and facts.platform == "linux":
        try:
            found.append(dirty_pages(Subject(facts, config), slowest))
            found.append(overflows(RealSystem().read(Wanted(files=(NETSTAT,))), facts))
        except CannotTell as reason:
            found.append(unknown("dirty-pages", str(reason)))
    return found


def measure(folder: str, bytes_max: int, progress: Callable[[], object] = lambda: None) -> DiskSpeed:
    """Measure a folder: 200 flushes of 4 kB each, then writes in order with a flush at the end."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        descriptor, block = file.fileno(), os.urandom(BLOCK_BYTES)
        flushes, begun_s = [], time.perf_counter()
        for number in range(FLUSHES):
            os.write(descriptor, block[:FLUSH_BYTES])
            before_s = time.perf_counter()
            sync_descriptor(descriptor)
            flushes.append((time.perf_counter() - before_s) * 1000)
            if number % 4 == 3:
                progress()
            if time.perf_counter() - begun_s > FLUSHES_S_MAX:
                break
        written, begun_s, shown = 0, time.perf_counter(), 0
        size_max = min(SEQUENTIAL_BYTES_MAX, max(bytes_max, BLOCK_BYTES))
        while written < size_max and (passed_s := time.perf_counter() - begun_s) < SEQUENTIAL_S:
            written += os.write(descriptor, block)
            share = max(written / size_max, passed_s / SEQUENTIAL_S)
            while shown < int(share * 50):
                shown += 1
                progress()
        sync_descriptor(descriptor)
        return DiskSpeed(tuple(sorted(flushes)), written / (time.perf_counter() - begun_s))


def judge(directory: Directory, speed: DiskSpeed) -> list[Finding]:
    """What the measured numbers mean."""
    is_rotating = any(disk.files.get("queue/rotational", "").strip() == "1" for disk in directory.disks)
    limit_ms = P99_MS_MAX_ROTATING if is_rotating else P99_MS_MAX
    p50, p99 = speed.percentile(0.5), speed.percentile(0.99)
    text = f"{directory.path}: an fsync takes {p50:.2f} ms (p50), {p99:.2f} ms (p99)"
    if p99 > limit_ms:
        why = "each commit of metadata waits for one on a majority of the controllers, and so does flush.messages"
        now = "put metadata.log.dir on a faster disk, or one that nothing else writes"
        first = Finding("fsync", Level.WARN, text, f"p99 below {limit_ms:.0f} ms", why, now)
    elif p50 < TOO_FAST_MS:
        why = "no device is so fast: a cache answers, or memory, and a power loss takes what it holds"
        first = Finding("fsync", Level.NOTE, text, "", why, "find out what is below: lsblk, mount")
    else:
        first = fine("fsync", text)
    rate = f"{directory.path} is written at {size_text(speed.bytes_per_s)} a second"
    # What was measured is worth a line although nothing is wrong.
    return [replace(first, level=Level.NOTE) if first.level is Level.FINE else first, Finding("disk-rate", Level.NOTE, rate)]
