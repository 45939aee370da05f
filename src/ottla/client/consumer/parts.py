"""`Parts`: the machines of one consumer, put together over its connections.

The order of the machines is the order in which one makes work for the next: positions ask for offsets, offsets for the
coordinator, and everything for metadata.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.client.cluster import Cluster
from ottla.client.connections import ConnectionPool
from ottla.client.link_options import link_options
from ottla.client.metrics import ClientMetrics
from ottla.client.runtime import ClientRuntime
from ottla.client.world import ClientWorld
from ottla.client_core.consumer.commits import Commits, CommittedOffsets
from ottla.client_core.consumer.fetcher import Fetcher, FetchErrors
from ottla.client_core.consumer.offset_lister import OffsetLister
from ottla.client_core.consumer.positions import Positions
from ottla.client_core.consumer.settings import reset_of
from ottla.client_core.consumer.subscription import Subscription
from ottla.client_core.coordinators import CoordinatorFinder, CoordinatorKind
from ottla.client_core.machine import Machine
from ottla.client_core.metadata import Metadata
from ottla.client_core.metrics.consumer import ConsumerMetrics, CoordinatorMetrics
from ottla.config.client import ConsumerSettings


class Parts:
    """Everything that runs on the loop for one consumer."""

    def __init__(
        self,
        world: ClientWorld,
        settings: ConsumerSettings,
        after_round: Callable[[], None],
        on_broken: Callable[[Exception], None],
    ) -> None:
        below = world.randomness.below
        self.metadata = Metadata(settings, below, auto_create=settings.allow_auto_create_topics)
        options = link_options(settings, world, "ottla-consumer")
        self.metrics = ClientMetrics("consumer", settings, world)
        self.pool = ConnectionPool(world, settings, settings.bootstrap_servers, options, self.metadata, self.metrics)
        self.cluster = Cluster(world, settings, self.pool, self.metadata)
        self.subscription = Subscription()
        reset = reset_of(settings)
        self.lister = OffsetLister(self.metadata, settings, below)
        self.finder: CoordinatorFinder | None = None
        self.committed: CommittedOffsets | None = None
        self.commits: Commits | None = None
        if settings.group_id is not None:
            group_id = settings.group_id
            self.finder = CoordinatorFinder(self.metadata, CoordinatorKind.GROUP, group_id, settings, below)
            self.committed = CommittedOffsets(group_id, self.finder, self.metadata, settings, below)
            self.commits = Commits(group_id, self.finder, self.metadata, settings, below)
        self.positions = Positions(
            self.subscription, self.metadata, settings, self.lister, reset, world.clock.now_ms, self.committed
        )
        errors = FetchErrors(self.metadata, settings, reset)
        self.fetcher = Fetcher(self.subscription, self.metadata, settings, errors, below)
        if self.finder is not None:
            self.finder.connections = self.pool
        for part in (self.lister, self.positions, self.fetcher):
            part.connecting.connections = self.pool
        self.measured = self.fetcher.metrics = ConsumerMetrics(self.metrics.registry)
        self.measured_group: CoordinatorMetrics | None = None
        if settings.group_id is not None:
            self.measured_group = CoordinatorMetrics(self.metrics.registry)
            self.measured_group.watch_assignment(lambda: len(self.subscription.partitions))
            self.metrics.api_latencies = self.measured_group.sensors
        self.metrics.resource.update(_resource(settings))
        found: list[Machine | None] = [
            self.positions,
            self.lister,
            self.committed,
            self.fetcher,
            self.commits,
            self.finder,
            self.metadata,
        ]
        machines: list[Machine] = [machine for machine in found if machine is not None]
        self.runner = ClientRuntime(machines, self.pool, world.clock, after_round, on_broken)

    def after_round(self) -> None:
        """After a round of the machines: metrics are pushed over connections that exist anyway."""
        self.metrics.after_round(self.runner, self.metadata.responses > 0)

    async def push_last(self, timeout_s: float) -> None:
        """Push the metrics once more, if the cluster wants them."""
        await self.metrics.close(self.runner, timeout_s)

    def close(self) -> None:
        """Send nothing more and end the connections."""
        self.runner.close()
        self.pool.close()


def _resource(settings: ConsumerSettings) -> dict[str, str]:
    """What pushed metrics say of this consumer (KIP-714); the member id is added when the group gives one."""
    given = {
        "group_id": settings.group_id,
        "group_instance_id": settings.group_instance_id,
        "client_rack": settings.client_rack,
    }
    return {name: value for name, value in given.items() if value}
