"""Workers and helpers of the simulator: they run the same jobs in place, on the simulated disk and clock."""

import importlib
import json
from collections.abc import Mapping

from ottla.env import Clock, Disk, Progress
from ottla.env.work import InlineWorkers

__all__ = ["InPlaceHelpers", "InlineWorkers"]


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
