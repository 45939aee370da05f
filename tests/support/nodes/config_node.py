"""A node with only settings and a controller, for tests of the handlers that describe and change settings.

    node = ConfigNode({"log.retention.hours": "5"})
    response = node.ask(DescribeConfigsRequest(...))

The controller's decisions are replayed and published at once, as if every append were committed.
"""

import asyncio
import importlib
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.requests.apis import ON_BROKER
from ottla.broker.requests.context import ConnectionInfo, RequestContext, future_of
from ottla.broker.requests.scheduler import Scheduler
from ottla.broker.services import Services
from ottla.broker.settings import BrokerSettings, SettingsChange
from ottla.errors import KafkaError
from ottla.ids import Uuid
from ottla.metadata.controller.apis import decision_of
from ottla.metadata.controller.decision import Asker
from ottla.metadata.controller.state import ControllerSettings, ControllerState
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import Provenance
from ottla.wire.apis import APIS
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

STATIC = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data",
}
DIRECTORY_ID = Uuid(b"directory-of-1--")
TOPIC_IDS = {"t": Uuid(b"topic-t-topic-t-"), "u": Uuid(b"topic-u-topic-u-")}


class FakeLoggers:
    """Two loggers, and their levels."""

    def __init__(self) -> None:
        self.now: dict[str, str] = {"root": "INFO", "ottla.log": "INFO"}

    def levels(self) -> dict[str, str]:
        return dict(self.now)

    def set_level(self, name: str, level: str | None) -> None:
        self.now[name] = level or self.now["root"]


class ConfigNode:
    """Node 1 of a fresh cluster with topics `t` and `u`."""

    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        self.loggers = FakeLoggers()
        self.settings = BrokerSettings(STATIC | dict(static or {}), loggers=self.loggers)
        self.metadata = MetadataCache()
        config = self.settings.current
        self.state = ControllerState(
            ControllerSettings("cluster", 1, static=self.settings.static, topic_defaults=config.log.topic_defaults),
            cast("Any", None),
        )
        self.written: list[Message] = []
        self.last_change = SettingsChange()
        self.replay(
            FeatureLevelRecord(name="metadata.version", feature_level=30),
            FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
            ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
            RegisterBrokerRecord(broker_id=1, incarnation_id=DIRECTORY_ID, broker_epoch=1, fenced=False),
            *(TopicRecord(name=name, topic_id=topic_id) for name, topic_id in TOPIC_IDS.items()),
            *(
                PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1, directories=[DIRECTORY_ID])
                for topic_id in TOPIC_IDS.values()
            ),
        )
        self.written.clear()
        self.services = cast(
            "Services",
            SimpleNamespace(
                node_id=1,
                settings=self.settings,
                metadata=self.metadata,
                channel=SimpleNamespace(forward=self.forward),
                loader=SimpleNamespace(caught_up=self.caught_up),
                scheduler=Scheduler(now_s=lambda: 0.0),
            ),
        )

    async def forward(self, request: ForwardedRequest, timeout_ms: int | None = None) -> Any:
        decision = decision_of(request.message.KEY)(self.state, request.message, 0, Asker(request.version))
        self.replay(*decision.records)
        return decision.response

    async def caught_up(self) -> None: ...

    def replay(self, *records: Message) -> None:
        """Replay committed records."""
        self.written += records
        self.state.replay(records, self.state.next_offset, 1, 0)
        delta = MetadataDelta(self.metadata.image)
        delta.replay_all(records)
        image = delta.finish(Provenance(self.state.next_offset - 1, 1, 0))
        self.last_change = self.settings.apply(delta, image)
        self.metadata.image = image

    def ask(self, request: Message, version: int | None = None) -> Any:
        """The response of the request's handler, refusals included, in `version` or the newest."""
        return asyncio.run(self._ask(request, version))

    async def _ask(self, request: Message, version: int | None) -> Any:
        module = importlib.import_module(f"ottla.broker.handlers.{ON_BROKER[request.KEY]}")
        connection = ConnectionInfo(1, "PLAINTEXT", ("127.0.0.1", 1))
        version = APIS[request.KEY].newest if version is None else version
        context = RequestContext(self.services, connection, request.KEY, version, 1, "test", 0.0)
        try:
            return await future_of(module.handle(context, request))
        except KafkaError as error:
            return module.refuse(context, request, error)
