"""The clusters of a pipeline: their topics, and outages of their brokers while it runs.

An outage is reported when it begins and when it ends. Spark's queries retry by themselves for some minutes. If one breaks, the
run waits for the brokers and starts the flows again from their checkpoints.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from ottla.cli.common.output import warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.waiting import shown_duration, with_cluster_awaited
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.cluster import Cluster
from ottla.config.client import admin_settings
from ottla.config.client.kinds import ADMIN
from ottla.env.real.tls_errors import protocol_mismatch
from ottla.errors import KafkaError, UnreachableError
from ottla.spark.pipelines import checks
from ottla.spark.pipelines.checks import ListTopics
from ottla.spark.pipelines.spec import Spec

LOOK_EVERY_S = 5.0
"""How often the brokers are asked for a sign of life during a run."""


def topics_within(wait_s: float) -> ListTopics:
    """A function that lists the topics of a cluster, and waits for its brokers up to `wait_s`."""

    def topics_of(client: Mapping[str, str]) -> Collection[str]:
        settings = client_settings(client)
        try:
            return with_cluster_awaited(settings, list_topics, 0)
        except UnreachableError:
            # A port of another protocol closes connections as a node does that starts, but it does not mend itself.
            if not wait_s or protocol_mismatch(client):
                raise
        return with_cluster_awaited(settings, list_topics, wait_s)

    return topics_of


def client_settings(client: Mapping[str, str]) -> ClientSettings:
    """Without the settings of the environment: the clients in Spark do not know them."""
    known = {name: value for name, value in client.items() if name in ADMIN.table}
    return ClientSettings(admin_settings(config=known), known)


async def _knock(cluster: Cluster) -> None:
    await cluster.metadata([])


class Outages:
    """Outages of the clusters that the topics of a pipeline are in."""

    def __init__(self, spec: Spec, wait_s: float) -> None:
        self._clusters = [client_settings(client) for client, _ in checks.by_cluster(checks.topics_wanted(spec))]
        self.wait_s = wait_s

    @contextmanager
    def told(self) -> Iterator[None]:
        """While this lasts, a thread says when brokers go away and when they are back."""
        ended = threading.Event()
        watching = threading.Thread(target=self._watch, args=(ended,), name="ottla-outages", daemon=True)
        watching.start()
        try:
            yield
        finally:
            ended.set()

    def _watch(self, ended: threading.Event) -> None:
        lost_s: dict[int, float] = {}
        while not ended.wait(LOOK_EVERY_S):
            for index, settings in enumerate(self._clusters):
                reason = _why_away(settings)
                servers = settings.properties["bootstrap.servers"]
                if ended.is_set():
                    return
                if reason is not None and index not in lost_s:
                    lost_s[index] = time.monotonic()
                    _tell(f"lost the brokers at {servers}, the flows wait for them: {reason}")
                elif reason is None and index in lost_s:
                    _tell(f"{servers} answers again after {shown_duration(time.monotonic() - lost_s.pop(index))}")

    def wait_for_end(self, failure: Exception) -> bool:
        """Whether brokers were away and are back, so that what broke with `failure` can go on."""
        away = [settings for settings in self._clusters if _why_away(settings) is not None]
        if not away or not self.wait_s:
            return False
        _tell(f"{failure}; it goes on when the brokers are back")
        for settings in away:
            with_cluster_awaited(settings, _knock, self.wait_s)
        return True


def _why_away(settings: ClientSettings) -> str | None:
    try:
        with_cluster(settings, _knock)
    except KafkaError as error:
        return str(error)
    return None


def _tell(text: str) -> None:
    """Print a message; on a terminal it takes the place of the live line, which is drawn again below it."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    warn(text)
