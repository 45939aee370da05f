"""Takes snapshots of the metadata, and deletes old snapshots and the log below them.

A snapshot is due when metadata.log.max.record.bytes.between.snapshots were committed since the last one, or when
metadata.log.max.snapshot.interval.ms have passed and something was committed. A task of its own writes it, one at a time, from
an immutable image. Then metadata.max.retention.* decides which old snapshots are deleted, and the log below them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.errors import OutOfDescriptors
from ottla.metadata.features import record_version
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.to_records import image_records
from ottla.raft.snapshots import SnapshotId
from ottla.wire.log_records import encode_metadata_record

if TYPE_CHECKING:
    from ottla.broker.runtime.quorum import QuorumRuntime
    from ottla.config.broker import BrokerConfig
    from ottla.env import Clock

logger = logging.getLogger("ottla.controller")

SNAPSHOT_FILES = 2
"""How many file descriptors writing a snapshot needs."""

ROLL_BYTES = 1 << 20
"""An active segment of at least this size is rolled after a snapshot, so that a start has less to check."""
START_BYTES_MAX = 16 << 20
"""If a start had to check more than this, the next commit takes a snapshot, so that the next start is shorter."""


class SnapshotWriter:
    """Counts what is committed, and takes snapshots in a task of its own."""

    def __init__(self, clock: Clock, config: BrokerConfig, quorum: QuorumRuntime) -> None:
        self._clock = clock
        self._config = config
        self._quorum = quorum
        self._bytes_since = 0
        self._last_s = clock.monotonic_s()
        self._task: asyncio.Task[None] | None = None

    def loaded(self, size_bytes: int) -> None:
        """The log was loaded: `size_bytes` of it lie after the newest snapshot."""
        is_long = self._quorum.log.partition_log.segments.active.size > START_BYTES_MAX
        self._bytes_since = self._config.metadata_log_max_record_bytes_between_snapshots if is_long else size_bytes

    def committed(self, image: MetadataImage, size_bytes: int) -> None:
        """`image` includes `size_bytes` more that were committed: take a snapshot of it if one is due."""
        self._bytes_since += size_bytes
        interval_ms = self._config.metadata_log_max_snapshot_interval_ms
        is_large = self._bytes_since >= self._config.metadata_log_max_record_bytes_between_snapshots
        is_old = interval_ms > 0 and (self._clock.monotonic_s() - self._last_s) * 1000 >= interval_ms
        can_begin = self._task is None and image.open_transaction is None
        if (is_large or is_old) and can_begin and self._quorum.log.partition_log.disk.can_open(SNAPSHOT_FILES):
            self._task = asyncio.get_running_loop().create_task(self._take(image))

    async def _take(self, image: MetadataImage) -> None:
        try:
            self._bytes_since = 0
            self._last_s = self._clock.monotonic_s()
            await self.write(image)
            await self._clean()
        except Exception as failure:
            self._quorum.fail(failure)
        finally:
            self._task = None

    async def write(self, image: MetadataImage) -> None:
        """Write a snapshot of `image`, unless there is one already."""
        metadata_log = self._quorum.log
        snapshot_id = SnapshotId(image.provenance.offset + 1, image.provenance.epoch)
        latest = metadata_log.snapshots.latest
        if latest is not None and latest.offset >= snapshot_id.offset:
            return
        kraft_version, voters = self._quorum.voters_before(snapshot_id.offset)
        await metadata_log.partition_log.flush()  # a start does not check the log below the newest snapshot
        try:
            size_bytes = await metadata_log.snapshots.write(
                snapshot_id,
                image.provenance.timestamp_ms,
                kraft_version,
                voters if kraft_version else None,
                _values(image),
                self._clock.now_ms(),
            )
        except OSError as error:
            raise metadata_log.partition_log.fail(error) from error
        logger.info("snapshot %s written, %d bytes", snapshot_id, size_bytes)

    async def _clean(self) -> None:
        """Delete the oldest snapshots, and the log below them, as far as retention says."""
        metadata_log, config = self._quorum.log, self._config
        if metadata_log.partition_log.segments.active.size >= ROLL_BYTES:
            try:
                metadata_log.partition_log.roll()
            except OutOfDescriptors:
                pass  # tried again after the next snapshot
        while True:
            try:
                keep = metadata_log.snapshots.next_to_keep(
                    metadata_log.partition_log.size_bytes,
                    config.metadata_max_retention_bytes,
                    config.metadata_max_retention_ms,
                    self._clock.now_ms(),
                )
            except OSError as error:
                raise metadata_log.partition_log.fail(error) from error
            if keep is None:
                break
            await metadata_log.delete_before(keep)
        await metadata_log.partition_log.delete_due_files()

    async def close(self) -> None:
        """Cancel a snapshot under way; the next start removes the half-written file."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _values(image: MetadataImage) -> Iterator[bytes]:
    metadata_version = image.metadata_version
    for record in image_records(image):
        yield encode_metadata_record(record, record_version(record, metadata_version))
