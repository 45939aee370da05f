"""A controller without decisions: a replica of the metadata log on a real socket, to elect, kill and restart."""

import asyncio
import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from ottla.broker.formatting import FormatOptions, format_directories
from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.net.listeners import Listeners
from ottla.broker.node_settings import net_settings
from ottla.broker.requests.pipeline import RequestPipeline
from ottla.broker.runtime.metadata_log import MetadataBatch
from ottla.broker.runtime.quorum import QuorumRuntime
from ottla.broker.settings import BrokerSettings
from ottla.env import World
from ottla.log.directories.meta_properties import read_meta_properties
from ottla.metadata.image.image import ResourceType
from ottla.raft.snapshots import SnapshotContent, SnapshotId
from ottla.wire.messages.metadata_records import ConfigRecord

CLUSTER_ID = "b3R0bGEtdGVzdHMtMDAwMQ"
HANG_S = 150.0


class QuorumServer:
    """One controller. `records` are the committed settings in order; a snapshot replaces them."""

    def __init__(self, world: World, directory: str, node_id: int, port: int, settings: dict[str, str] | None = None) -> None:
        self.world = world
        self.directory = directory
        self.node_id = node_id
        self.port = port
        self.settings = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": directory,
            "controller.quorum.election.timeout.ms": "600",
            "controller.quorum.fetch.timeout.ms": "1200",
            "controller.quorum.request.timeout.ms": "1200",
            "controller.quorum.election.backoff.max.ms": "200",
        } | (settings or {})
        self.records: list[str] = []
        self.leaders: list[tuple[int, int]] = []
        self.snapshots: list[SnapshotId] = []
        self.quorum: QuorumRuntime
        self.is_up = False

    async def format(self, **options: Any) -> None:
        os.makedirs(self.directory, exist_ok=True)
        config = BrokerSettings(self.settings).current
        await format_directories(self.world, config, FormatOptions(**{"cluster_id": CLUSTER_ID} | options))

    async def start(self) -> None:
        settings = BrokerSettings(self.settings)
        config = settings.current
        meta = read_meta_properties(self.world.disk, config.log.metadata_log_dir)
        assert meta is not None
        assert meta.directory_id is not None
        self.records = []
        self.quorum = await QuorumRuntime.open(self.world, config, meta.directory_id, meta.cluster_id)
        pipeline = RequestPipeline()
        self._listeners = Listeners(self.world, net_settings(config), pipeline)
        await self._listeners.open(config.listeners, config.controller_listener_names)
        pipeline.services = cast(
            Any, SimpleNamespace(quorum=self.quorum, settings=settings, metadata=MetadataCache(), node_id=self.node_id)
        )
        await self.quorum.join({"CONTROLLER": ("127.0.0.1", self.port)})
        self._listeners.serve()
        self.quorum.start(self._committed, self._loaded, lambda leader_id, epoch: self.leaders.append((leader_id, epoch)))
        self.is_up = True

    async def _committed(self, batches: Sequence[MetadataBatch]) -> None:
        for batch in batches:
            self.records += [record.value or "" for record in batch.records if isinstance(record, ConfigRecord)]

    async def _loaded(self, snapshot_id: SnapshotId, content: SnapshotContent) -> None:
        self.snapshots.append(snapshot_id)
        self.records = [record.value or "" for record in content.records if isinstance(record, ConfigRecord)]

    def write(self, value: str) -> None:
        """Append a record; it is committed once it is in `records`."""
        record = ConfigRecord(resource_type=ResourceType.BROKER, resource_name="", name="n", value=value)
        self.quorum.append(self.quorum.prepare([record], 30))

    def kill(self) -> None:
        """End as `kill -9` would: connections close, nothing is flushed or sent."""
        self.is_up = False
        self.quorum.abort()
        self._listeners.abort()
        self.quorum.log.partition_log.fail(OSError("killed"))

    async def stop(self) -> None:
        self.is_up = False
        await self.quorum.close()
        self._listeners.abort()


async def until(condition: Callable[[], Any], what: str) -> None:
    """Wait for a condition on the running loop."""
    try:
        async with asyncio.timeout(HANG_S):
            while not condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"waited {HANG_S} s for: {what}") from None


def leader_of(servers: Sequence[QuorumServer]) -> QuorumServer | None:
    """The one that leads, if a majority agrees."""
    up = [server for server in servers if server.is_up]
    epoch = max((server.quorum.epoch for server in up), default=-1)
    leaders = [server for server in up if server.quorum.is_leader and server.quorum.epoch == epoch]
    return leaders[0] if leaders else None
