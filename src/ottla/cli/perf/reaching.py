"""Checks before a measurement that the cluster answers and has the topic: a client by itself would wait for a minute."""

from __future__ import annotations

import asyncio

from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.client.cluster import Cluster, topic_error
from ottla.client_core.backoff import Backoff
from ottla.errors.codes import ErrorCode, error_of

TOPIC_S = 10
"""How long a topic that was just created may take to get a leader."""


def check_topic(settings: ClientSettings, topic: str) -> None:
    """Raise if the topic is not there. Brokers with auto.create.topics.enable create it."""
    with_cluster(settings, lambda cluster: _find(cluster, topic))


async def _find(cluster: Cluster, name: str) -> None:
    deadline_s = asyncio.get_running_loop().time() + TOPIC_S
    backoff = Backoff(cluster.settings.retry_backoff_ms, cluster.settings.retry_backoff_max_ms, cluster.world.randomness.below)
    while True:
        topic = (await cluster.metadata([name], auto_create=True)).topics[0]
        code = topic.error_code
        if not code and not any(each.leader_id >= 0 for each in topic.partitions):
            code = ErrorCode.LEADER_NOT_AVAILABLE
        if not code:
            return
        known = error_of(code)
        if known is None or not known.retriable or not await cluster.wait(backoff, deadline_s):
            raise topic_error(code, name)
