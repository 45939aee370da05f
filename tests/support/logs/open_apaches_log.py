"""Opens a partition folder that Apache Kafka wrote (`apache_logs.py`) with Ottla, and reads it as a consumer does."""

from pathlib import Path

from tests.support.logs.apache_logs import COMPACTED_TOPICS, SeenRecord
from tests.support.logs.log_reading import consume

from ottla.config.topic import LogConfig
from ottla.env.real import RealDisk
from ottla.ids import TopicPartition
from ottla.log.directories.checkpoint import OffsetCheckpoint
from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation
from ottla.log.recovery.log_loader import LoadReport, load_log
from ottla.sim.world import ManualClock

START_MS = 1_700_000_000_000
"""The timestamp of the records; with a clock at that time their producers have not expired."""


def config_of(topic: str) -> LogConfig:
    """The settings that java/FillTopics.java created the topic with."""
    return LogConfig(
        index_interval_bytes=512,
        segment_bytes=2000 if topic == "compacted-expired" else 8192,
        segment_index_bytes=65536,
        retention_ms=-1,
        cleanup_policy=("compact",) if topic in COMPACTED_TOPICS else ("delete",),
        min_cleanable_dirty_ratio=0.01,
        message_timestamp_type="LogAppendTime" if topic == "append-time" else "CreateTime",
    )


async def open_apaches_log(folder: Path, directory: Path, *, clean_shutdown: bool) -> tuple[PartitionLog, LoadReport]:
    """Open `folder` with its entries in the checkpoints of `directory`. Every record counts as replicated."""
    topic = folder.name.rpartition("-")[0]
    log, report = await load_log(
        RealDisk(),
        ManualClock(START_MS),
        str(folder),
        config_of(topic),
        recovery_point=_checkpoint(directory, "recovery-point-offset-checkpoint", topic),
        log_start_offset=_checkpoint(directory, "log-start-offset-checkpoint", topic),
        clean_shutdown=clean_shutdown,
    )
    log.update_high_watermark(log.log_end_offset)
    return log, report


def _checkpoint(directory: Path, name: str, topic: str) -> int:
    return OffsetCheckpoint(RealDisk(), str(directory / name)).read().get(TopicPartition(topic, 0), 0)


def seen_by(log: PartitionLog, isolation: Isolation) -> list[SeenRecord]:
    """The records that a consumer of `log` gets, without control records."""
    return [
        SeenRecord(
            record.offset, record.timestamp, batch.is_append_time, batch.leader_epoch, record.key, record.value, record.headers
        )
        for batch, record in consume(log, isolation)
        if not batch.is_control
    ]
