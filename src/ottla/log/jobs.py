"""The jobs that a helper process runs for the log (`env/work.py` says how): work that burns CPU on files of one partition.

A job is a JSON object whose "kind" names it. Jobs read what nobody changes and write what nobody yet reads; whatever must
happen to a log in use is done by its owner, with what the job reports.
"""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from ottla.config.topic import LogConfig
from ottla.env import HelperWorld
from ottla.log.compaction.cleaning import CleaningPass
from ottla.log.compaction.plan import CompactionPlan
from ottla.log.loading import recover_folder
from ottla.log.partition_log import LogOptions

MODULE = "ottla.log.jobs"
COMPACT = "compact"
RECOVER = "recover"


async def run_job(job: Mapping[str, Any], world: HelperWorld) -> dict[str, object]:
    """Do `job` and return its result."""
    if job["kind"] == COMPACT:
        return await compact(job, world)
    if job["kind"] == RECOVER:
        return await recover(job, world)
    raise ValueError(f"no job of the log is called {job['kind']!r}")


async def compact(job: Mapping[str, Any], world: HelperWorld) -> dict[str, object]:
    """One pass of compaction: job["plan"] is a `CompactionPlan`; reports every `CleanedGroup`, returns `CompactionStats`."""
    cleaning = CleaningPass(CompactionPlan.from_json(job["plan"]), world)
    async with aclosing(cleaning.run()) as groups:
        async for group in groups:
            world.progress(asdict(group))
    return asdict(cleaning.stats)


async def recover(job: Mapping[str, Any], world: HelperWorld) -> dict[str, object]:
    """Recover the log in job["folder"], which nobody has open, and leave it as a clean shutdown would; returns `LoadReport`."""
    report = await recover_folder(
        world.disk,
        world.clock,
        job["folder"],
        LogConfig.from_json(job["config"]),
        LogOptions(producer_expiration_ms=job["producer_expiration_ms"]),
        recovery_point=job["recovery_point"],
        log_start_offset=job["log_start_offset"],
    )
    return report.as_json()
