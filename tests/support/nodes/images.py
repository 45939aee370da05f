"""Small metadata images and request contexts, for tests of handlers."""

from types import SimpleNamespace
from typing import Any

from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.requests.authorization import Authorization
from ottla.broker.requests.context import ConnectionInfo, RequestContext
from ottla.broker.requests.scheduler import Scheduler
from ottla.broker.requests.throttle import Throttling
from ottla.ids import DIRECTORY_UNASSIGNED, Uuid
from ottla.metadata.image.cluster import BrokerRegistration, ClusterImage, ControllerRegistration, Endpoint
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState, Topic, TopicsImage

LISTENER = "PLAINTEXT"


def uuid_of(number: int) -> Uuid:
    """A topic or directory id that is easy to recognise; numbers below 100 are reserved for directories without one."""
    return Uuid(number.to_bytes(16, "big"))


def broker(
    id: int, *, fenced: bool = False, listener: str = LISTENER, directories: tuple[Uuid, ...] = ()
) -> BrokerRegistration:
    endpoints = {listener: Endpoint(listener, f"host{id}", 9092 + id, 0)}
    return BrokerRegistration(id, 7, uuid_of(1000 + id), endpoints, {}, None, fenced, False, directories)


def controller(id: int) -> ControllerRegistration:
    return ControllerRegistration(id, uuid_of(2000 + id), False, {"CONTROLLER": Endpoint("CONTROLLER", "host", 9093, 0)}, {})


def partition(*replicas: int, leader: int | None = None, directories: tuple[Uuid, ...] | None = None) -> PartitionState:
    return PartitionState(
        replicas,
        directories or (DIRECTORY_UNASSIGNED,) * len(replicas),
        replicas,
        replicas[0] if leader is None else leader,
        leader_epoch=3,
        partition_epoch=4,
    )


def image_of(brokers: list[BrokerRegistration], topics: dict[str, list[PartitionState]], **more: Any) -> MetadataImage:
    made = [
        Topic(name, uuid_of(500 + number), dict(enumerate(partitions)))
        for number, (name, partitions) in enumerate(topics.items())
    ]
    by_name, by_id = {topic.name: topic for topic in made}, {topic.id: topic for topic in made}
    cluster = ClusterImage({each.id: each for each in brokers}, {1: controller(1)})
    return MetadataImage(cluster=cluster, topics=TopicsImage(by_name, by_id), **more)


def context_of(
    image: MetadataImage, api_key: int, version: int, *, on_controller: bool = False, **services: Any
) -> RequestContext:
    """A request's context with the image and only the services that the test gives."""
    cache = MetadataCache()
    cache.image = image
    scheduler = Scheduler(now_s=lambda: 0.0)  # no slice is ever used up
    known: Any = SimpleNamespace(
        metadata=cache,
        cluster_id="cluster",
        node_id=1,
        scheduler=scheduler,
        authorization=Authorization(lambda: 0.0),
        throttling=Throttling(),
        **services,
    )
    connection = ConnectionInfo(1, "CONTROLLER" if on_controller else LISTENER, ("127.0.0.1", 50000), on_controller)
    return RequestContext(known, connection, api_key, version, 1, "test", 0.0)
