"""A quorum of one, its loader and its controller on a simulated disk, to format, start, write to, crash and start again."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, cast

from ottla.broker.formatting import FormatOptions, format_directories
from ottla.broker.runtime.controller import ControllerRuntime
from ottla.broker.runtime.metadata_loader import MetadataLoader
from ottla.broker.runtime.quorum import QuorumRuntime
from ottla.broker.runtime.snapshot_writer import SnapshotWriter
from ottla.broker.runtime.start import start_metadata
from ottla.config.broker import BrokerConfig
from ottla.env import Network, World
from ottla.log.directories.meta_properties import read_meta_properties
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerSettings, ControllerState
from ottla.metadata.image.cluster import Endpoint
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, ResourceType
from ottla.sim.disk import MemoryDisk
from ottla.sim.world import ManualClock, SeededRandomness
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import ConfigRecord

DIRECTORY = "/data"
FOLDER = f"{DIRECTORY}/__cluster_metadata-0"
CLUSTER_ID = "b3R0bGEtdGVzdHMtMDAwMQ"
ENDPOINTS = (Endpoint("CONTROLLER", "localhost", 9093, 0),)

Publish = Callable[[MetadataDelta, MetadataImage], None]


def settings_of(changes: dict[str, str] | None = None) -> dict[str, str]:
    """A server.properties for one node; a change to "" removes a setting."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "log.dirs": DIRECTORY,
    } | (changes or {})
    return {name: text for name, text in settings.items() if text}


class QuorumNode:
    """`quorum`, `loader` and `controller` of a node on `disk`. `published` has the published images, in order."""

    def __init__(self, changes: dict[str, str] | None = None, seed: int = 0) -> None:
        self.clock = ManualClock()
        self.disk = MemoryDisk(Random(seed), self.clock)
        self.randomness = SeededRandomness(Random(seed + 1))
        self.config = BrokerConfig.from_settings(settings_of(changes))
        self.published: list[MetadataImage] = []
        self.on_publish: Publish | None = None

    @property
    def world(self) -> World:
        return World(self.disk, self.clock, cast(Network, None), self.randomness, None)

    @property
    def is_open(self) -> bool:
        return hasattr(self, "quorum")

    def configure(self, changes: dict[str, str]) -> None:
        self.config = BrokerConfig.from_settings(settings_of(changes))

    async def format(self, **options: Any) -> list[str]:
        return await format_directories(
            self.world, self.config, FormatOptions(**{"cluster_id": CLUSTER_ID, "standalone": True} | options)
        )

    async def open(self, endpoints: Sequence[Endpoint] = ENDPOINTS) -> None:
        meta = read_meta_properties(self.disk, self.config.log.metadata_log_dir)
        assert meta is not None
        assert meta.directory_id is not None
        self.quorum = await QuorumRuntime.open(self.world, self.config, meta.directory_id)
        settings = ControllerSettings(meta.cluster_id, self.config.node_id)
        self.loader = MetadataLoader(self._publish, SnapshotWriter(self.clock, self.config, self.quorum))
        self.controller = ControllerRuntime(self.world, self.config, settings, self.quorum, self.loader, endpoints)

    async def start(self, endpoints: Sequence[Endpoint] = ENDPOINTS) -> None:
        await self.open(endpoints)
        await start_metadata(self.quorum, self.loader, self.controller, endpoints)

    async def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if self.on_publish is not None:
            self.on_publish(delta, image)
        self.published.append(image)

    async def write(self, *records: Message) -> int:
        """Write `records` as one change and wait until it is published; returns their number, to recognise the result by."""

        def decide(state: ControllerState, now_ms: int) -> Decision[int]:
            return Decision(len(records), records)

        count = await self.controller.write(decide)
        await self.loader.caught_up()
        return count

    async def set(self, name: str, value: str) -> None:
        """Set a cluster-wide broker setting: the smallest change there is."""
        await self.write(setting(name, value))

    def settings(self) -> dict[str, str]:
        """The settings made by `set`, as published last."""
        image = self.loader.published
        return {
            name: value
            for name, value in image.configs.get((ResourceType.BROKER, ""), {}).items()
            if name != "min.insync.replicas"
        }

    async def close(self) -> None:
        self.controller.close()
        await self.loader.close()
        await self.quorum.close()

    def crash(self, power_loss: bool = True) -> None:
        """Kill the process, perhaps with a power loss; `start` then finds what is left."""
        if self.is_open:
            self.quorum.abort()
            self.controller.close()
        self.disk = self.disk.crash(power_loss)

    def files(self) -> list[str]:
        return self.disk.list_directory(FOLDER)


def setting(name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.BROKER, resource_name="", name=name, value=value)
