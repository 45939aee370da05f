"""What surrounds a simulated node: its clock, its randomness, and helpers that run in place."""

import asyncio
import importlib
import json
from collections.abc import Mapping
from random import Random

from ottla.env import Clock, Disk, Progress
from ottla.env.work import InlineWorkers
from ottla.ids import Uuid, random_uuid

__all__ = ["InPlaceHelpers", "InlineWorkers"]


START_MS = 1_700_000_000_000


class ManualClock:
    """`Clock` that a test controls: `advance` moves both times forward, `jump` moves only wall time, either way."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def now_ns(self) -> int:
        return self.now_ms() * 1_000_000

    def monotonic_s(self) -> float:
        return self._monotonic_ms / 1000

    def advance(self, milliseconds: float) -> None:
        if milliseconds < 0:
            raise ValueError("time does not run backwards; to set the wall clock back, use jump()")
        self._monotonic_ms += milliseconds
        self._now_ms += int(milliseconds)

    def jump(self, milliseconds: int) -> None:
        """Set the wall clock forward or back, as an administrator or a time server would."""
        self._now_ms += milliseconds


class LoopClock:
    """`Clock` that reads a loop's time, which a virtual loop moves from timer to timer. Each node may have its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, now_ms: int = START_MS) -> None:
        self._loop = loop
        self._offset_ms = now_ms

    def now_ms(self) -> int:
        return self._offset_ms + int(self._loop.time() * 1000)

    def now_ns(self) -> int:
        return self.now_ms() * 1_000_000

    def monotonic_s(self) -> float:
        return self._loop.time()

    def jump(self, milliseconds: int) -> None:
        """Set this clock's wall time forward or back."""
        self._offset_ms += milliseconds


class SeededRandomness:
    """`Randomness` from a `Random`: the same seed gives the same values."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def new_uuid(self) -> Uuid:
        return random_uuid(self._random.randbytes)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


class InPlaceWorld:
    """`HelperWorld` over the disk and clock of the test."""

    def __init__(self, disk: Disk, clock: Clock, on_progress: Progress | None) -> None:
        self.disk = disk
        self.clock = clock
        self._on_progress = on_progress

    def progress(self, report: dict[str, object]) -> None:
        if self._on_progress is not None:
            self._on_progress(json.loads(json.dumps(report)))

    async def pause(self, seconds: float) -> None:
        pass  # throttling serves no purpose here


class InPlaceHelpers:
    """`Helpers` without processes. Job and result still pass through JSON, so that what cannot be encoded fails here too."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self.jobs_run = 0

    async def run(self, module: str, job: Mapping[str, object], on_progress: Progress | None = None) -> dict[str, object]:
        self.jobs_run += 1
        world = InPlaceWorld(self._disk, self._clock, on_progress)
        result = await importlib.import_module(module).run_job(json.loads(json.dumps(job)), world)
        decoded: dict[str, object] = json.loads(json.dumps(result))
        return decoded
