"""ListGroups: asks every broker for the groups that it coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.cli.common.cluster import Cluster, refusal
from ottla.cli.common.coordinators import each_broker
from ottla.link import NoCommonVersion
from ottla.wire.apis import ApiKey
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

CONSUMER_PROTOCOLS = ("consumer", "")
"""Protocol types of groups that read topics; "" is that of groups that only commit offsets."""

STATES = ("Assigning", "CompletingRebalance", "Dead", "Empty", "PreparingRebalance", "Reconciling", "Stable")
TYPES = ("Classic", "Consumer")

_STATES_SINCE_VERSION, _TYPES_SINCE_VERSION = 4, 5


class ListedGroup(NamedTuple):
    """A group as its coordinator lists it. A field is "" if the broker is too old to send it."""

    id: str
    type: str
    state: str
    protocol: str
    coordinator_id: int

    @property
    def is_of_consumers(self) -> bool:
        """Whether Kafka counts it among the consumer groups."""
        return self.type in ("", *TYPES) and self.protocol in CONSUMER_PROTOCOLS


async def list_groups(cluster: Cluster, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
    """All groups of any protocol, filtered by `states` and `types` where given."""
    version = _TYPES_SINCE_VERSION if types else _STATES_SINCE_VERSION if states else 0

    async def ask(broker_id: int) -> list[ListedGroup]:
        link = await cluster.link_to(broker_id)
        if not link.versions.has(ApiKey.LIST_GROUPS, version):
            what = "type" if types else "state"
            raise NoCommonVersion(link.address, f"{link.address} is too old to list groups by {what}: leave --{what} out")
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        response: ListGroupsResponse = await link.request(request)
        if response.error_code:
            raise refusal(response.error_code, f"broker {broker_id} does not list its groups")
        return [
            ListedGroup(each.group_id, each.group_type.capitalize(), each.group_state, each.protocol_type, broker_id)
            for each in response.groups
        ]

    found = await each_broker(cluster, ask)
    # Both coordinators may list a group that moves from one to the other during our requests.
    unique = {each.id: each for listed in found.values() for each in listed}
    return [unique[group_id] for group_id in sorted(unique)]
