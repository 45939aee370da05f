"""Waits until a broker shows a change of a topic that the controller has made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.client.admin.topic_descriptions import TopicDescription, describe_topics
from ottla.client.cluster import Cluster
from ottla.client_core.backoff import Backoff

SEE_CHANGES_S = 5


async def see(cluster: Cluster, name: str, is_seen: Callable[[TopicDescription | None], bool]) -> None:
    """Wait, but not for long: brokers learn of a change after it is acknowledged, and a script's next command must find it.

    `is_seen` gets None while the broker does not know the topic.
    """
    deadline_s = asyncio.get_running_loop().time() + SEE_CHANGES_S
    settings = cluster.settings
    backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, cluster.world.randomness.below)
    while True:
        results = await describe_topics(cluster, [name])
        if is_seen(None if results.errors else results[name]) or not await cluster.wait(backoff, deadline_s):
            return
