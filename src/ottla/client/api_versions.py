"""Which versions of each API the brokers of a cluster serve: what they said when they were connected to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from ottla import __version__
from ottla.client.admin.cluster_state import NodeDescription, describe_cluster
from ottla.client.cluster import Cluster
from ottla.errors import BrokerNotAvailableError, KafkaError
from ottla.link.versions import PeerVersions, speakable
from ottla.wire.apis import APIS
from ottla.wire.messages.api_versions import ApiVersionsRequest


class ServedApi(NamedTuple):
    """The versions of one API that a broker serves."""

    key: int
    name: str
    """Empty if Ottla does not know the API."""
    oldest: int | None
    newest: int | None
    """None if the broker does not serve the API."""
    usable: int | None
    """The newest version that both sides know; None if there is none."""

    @property
    def is_older(self) -> bool:
        """Whether the broker serves only versions that are older than ours."""
        return self.newest is not None and bool(self.name) and self.newest < speakable(self.key)[0]


async def describe_api_versions(
    cluster: Cluster, ids: Sequence[int] = ()
) -> list[tuple[NodeDescription, tuple[ServedApi, ...] | KafkaError]]:
    """The APIs of the brokers with these ids (none: of all), or the error of a broker that cannot be reached."""
    nodes = (await describe_cluster(cluster)).nodes
    if missing := [each for each in ids if each not in nodes]:
        there = ", ".join(map(str, nodes))
        raise BrokerNotAvailableError(
            f"broker {missing[0]} is not in the cluster, or is down: the brokers that are up are {there}"
        )

    async def ask(node_id: int) -> tuple[ServedApi, ...] | KafkaError:
        try:
            return served_apis((await cluster.link_to(node_id)).versions)
        except KafkaError as error:
            return error

    chosen = [nodes[each] for each in sorted(set(ids) or nodes)]
    return list(zip(chosen, await asyncio.gather(*(ask(node.id) for node in chosen)), strict=True))


async def round_trips_ms(cluster: Cluster, count: int) -> list[float]:
    """How long `count` ApiVersions requests to the cluster's first address took, one by one: little but the network."""
    now = asyncio.get_running_loop().time
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
    await cluster.any_link()  # connecting is not counted
    found = []
    for _ in range(count):
        begun_s = now()
        await cluster.ask_any(request)
        found.append((now() - begun_s) * 1000)
    return found


def served_apis(versions: PeerVersions) -> tuple[ServedApi, ...]:
    """What a broker serves, in the order of keys, with the APIs of brokers that it lacks."""
    of_brokers = {key for key, api in APIS.items() if "broker" in api.listeners}
    return tuple(_served(versions, key) for key in sorted(of_brokers | set(versions.keys)))


def _served(versions: PeerVersions, key: int) -> ServedApi:
    name = APIS[key].name if key in APIS and not APIS[key].is_removed else ""
    oldest, newest = versions.served(key) or (None, None)
    if oldest is None or newest is None or not name:
        return ServedApi(key, name, oldest, newest, None)
    ours_oldest, ours_newest = speakable(key)
    usable = min(newest, ours_newest)
    return ServedApi(key, name, oldest, newest, usable if usable >= max(oldest, ours_oldest) else None)
