"""The helper process's side of recovering a large log: it leaves the folder as a clean shutdown would.

No other process may have the log open during the job. The job is what `recovery_job` returns; the result is a `LoadReport`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.config.topic import LogConfig
from ottla.env import HelperWorld
from ottla.log.partition_log import LogOptions
from ottla.log.recovery.loading import recover_folder

MODULE = "ottla.log.recovery.recovery_job"


def recovery_job(
    folder: str, config: LogConfig, options: LogOptions, recovery_point: int, log_start_offset: int
) -> dict[str, object]:
    """The job of recovering the log in `folder`."""
    return {
        "folder": folder,
        "config": config.to_json(),
        "producer_expiration_ms": options.producer_expiration_ms,
        "recovery_point": recovery_point,
        "log_start_offset": log_start_offset,
    }


async def run_job(job: Mapping[str, Any], world: HelperWorld) -> dict[str, object]:
    """Recover the log."""
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


class RecoveredElsewhere(NamedTuple):
    """The result of a finished job, as far as the node needs it to load the log."""

    recovery_point: int
    log_start_offset: int
    gap_offset: int | None
    notes: list[str]

    @classmethod
    def from_json(cls, report: Mapping[str, Any]) -> "RecoveredElsewhere":
        return cls(report["recovery_point"], report["log_start_offset"], report["gap_offset"], report["notes"])
