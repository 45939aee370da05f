"""A node's formatted log directories on a simulated disk, with shortcuts for tests."""

from collections.abc import Callable
from dataclasses import replace

from tests.support.logs.batches import T0, make_batch
from tests.support.logs.partition_logs import run

from ottla.config.broker_log import BrokerLogConfig
from ottla.config.topic import LogConfig
from ottla.env import Disk, Helpers
from ottla.ids import TopicPartition, Uuid
from ottla.log.compaction.compactor import Compactor
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.directories.log_directory import DirectoryWorld
from ottla.log.directories.meta_properties import MetaProperties, write_meta_properties
from ottla.log.directories.startup import open_all
from ottla.log.directories.upkeep import Upkeep
from ottla.sim.disk import MemoryDisk
from ottla.sim.world import ManualClock

TOPIC_ID = Uuid(bytes(15) + b"\xee")
SMALL = LogConfig(segment_bytes=2000, index_interval_bytes=200, file_delete_delay_ms=1000)
TWO = ("/a", "/b")


def uuids() -> Callable[[], Uuid]:
    count = 1000

    def new_uuid() -> Uuid:
        nonlocal count
        count += 1
        return Uuid(count.to_bytes(16, "big"))

    return new_uuid


class NodeStorage:
    """Node 1 of cluster `c`, with the directories `paths`."""

    def __init__(self, paths: tuple[str, ...] = TWO, *, compaction: bool = False, topic_config: LogConfig = SMALL) -> None:
        self.clock = ManualClock(T0)
        self.disk = MemoryDisk(clock=self.clock)
        self.new_uuid = uuids()
        self.compaction = compaction
        self.topic_config = topic_config
        self.config = BrokerLogConfig(log_dirs=paths, metadata_log_dir=paths[0], topic_defaults=topic_config)
        for path in paths:
            self.format(path)

    def format(self, path: str, node_id: int = 1, cluster_id: str = "c", directory_id: Uuid | None = None) -> None:
        self.disk.make_directory(path)
        run(self.disk.sync_directory("/"))
        meta = MetaProperties(cluster_id, node_id, directory_id or self.new_uuid())
        run(write_meta_properties(self.disk, path, meta, T0))

    def open(self, helpers: Helpers | None = None) -> LogDirectories:
        world = DirectoryWorld(self.disk, self.clock, self.new_uuid, helpers)
        compactor = Compactor(self.disk, self.clock, helpers or _NoHelpers()) if self.compaction else None
        self.directories = run(open_all(world, self.config, lambda _topic: self.topic_config, node_id=1, compactor=compactor))
        self.upkeep = Upkeep(self.directories, self.clock, self.config.producer_id_expiration_ms)
        return self.directories

    def create(self, topic: str, number: int = 0, topic_id: Uuid = TOPIC_ID, is_new: bool = True) -> TopicPartition:
        partition = TopicPartition(topic, number)
        run(self.directories.create(partition, self.topic_config, topic_id, is_new=is_new))
        return partition

    def fill(self, partition: TopicPartition, batches: int = 30) -> None:
        """Append batches of two records of some 60 bytes, and set the high watermark to the log end offset."""
        log = self.directories.find(partition)
        assert log is not None
        for _ in range(batches):
            value = b"%d " % log.log_end_offset + b"x" * 60
            log.append_as_leader(make_batch(value, value, key=b"key", timestamp=T0 + log.log_end_offset), 0)
        log.update_high_watermark(log.log_end_offset)

    def ends(self) -> dict[str, tuple[int, int, int]]:
        """Partition → (log start, high watermark, log end)."""
        logs = self.directories.logs.items()
        return {str(p): (log.log_start_offset, log.high_watermark, log.log_end_offset) for p, log in sorted(logs)}

    def close(self) -> None:
        run(self.directories.close(broker_epoch=7))

    def reopen(self) -> LogDirectories:
        self.close()
        return self.open()

    def crash(self, power_loss: bool = False, helpers: Callable[[Disk], Helpers] | None = None) -> LogDirectories:
        self.disk = self.disk.crash(power_loss)
        return self.open(helpers(self.disk) if helpers else None)

    def use(self, **settings: object) -> None:
        self.config = replace(self.config, **settings)  # type: ignore[arg-type]  # the settings are the dataclass's own


class _NoHelpers:
    async def run(self, *_: object) -> dict[str, object]:
        raise AssertionError("nothing here is large enough for a helper")
