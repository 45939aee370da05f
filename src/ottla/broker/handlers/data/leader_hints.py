"""The current leader of a partition, which Produce (v10) and Fetch (v16) add to NOT_LEADER_OR_FOLLOWER errors."""

from __future__ import annotations

from typing import NamedTuple

from ottla.broker.handlers.cluster.cluster_view import alive_endpoint
from ottla.broker.requests.context import RequestContext
from ottla.metadata.image.topics import NO_LEADER


class LeaderHint(NamedTuple):
    """The leader of a partition, and its endpoint on the client's listener, if that is known."""

    leader: int
    leader_epoch: int
    host: str | None
    port: int
    rack: str | None


def leader_hint(context: RequestContext, topic: str, index: int) -> LeaderHint:
    """The leader of a partition, as far as this node knows it."""
    services = context.services
    partition = services.partitions.find(topic, index)
    state = partition if partition is not None else services.metadata.partition(topic, index)
    if state is None:
        return LeaderHint(NO_LEADER, -1, None, -1, None)
    image = services.metadata.image
    endpoint = alive_endpoint(image, state.leader, context.connection.listener)
    if endpoint is None:
        return LeaderHint(state.leader, state.leader_epoch, None, -1, None)
    return LeaderHint(state.leader, state.leader_epoch, endpoint.host, endpoint.port, image.cluster.brokers[state.leader].rack)
