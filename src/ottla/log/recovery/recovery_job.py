"""The helper process's side of recovering a large log: the folder is left as a clean shutdown would leave it.

Nobody else may have the folder open meanwhile. The job is what `recovery_job` makes; the result is a `LoadReport`.
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
    """What the owner of the log has to know of a finished job."""

    recovery_point: int
    log_start_offset: int
    notes: list[str]

    @classmethod
    def from_json(cls, report: Mapping[str, Any]) -> "RecoveredElsewhere":
        return cls(report["recovery_point"], report["log_start_offset"], report["notes"])
