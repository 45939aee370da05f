"""A broker as commands show it: its state, its address, and how many partitions it leads and holds."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from ottla.cli.common.completion import complete_from_cluster
from ottla.client.admin.cluster_state import NodeDescription, describe_cluster
from ottla.client.cluster import Cluster
from ottla.client.health import ClusterState

HEADINGS = ("#Broker", "State", "Endpoint", "~Rack", "#Leaders", "#Replicas", "#Out of sync")
ACTIVE, FENCED = "active", "fenced"


class BrokerRow(NamedTuple):
    """One broker with its share of the partitions."""

    node: NodeDescription
    is_controller: bool
    leaders: int
    replicas: int
    out_of_sync: int
    """Its replicas that are not in the ISR."""

    @property
    def state(self) -> str:
        state = FENCED if self.node.is_fenced else ACTIVE
        return f"{state}, controller" if self.is_controller else state

    @property
    def endpoint(self) -> str:
        return f"{self.node.host}:{self.node.port}"

    @property
    def cells(self) -> tuple[object, ...]:
        return (
            self.node.id,
            self.state,
            self.endpoint,
            self.node.rack or "-",
            self.leaders,
            self.replicas,
            self.out_of_sync,
        )


def broker_rows(state: ClusterState) -> list[BrokerRow]:
    """Every broker, also those that only partitions still name."""
    partitions = [each for topic in state.topics.values() for each in topic.partitions]
    controller = None if state.quorum is None else state.quorum.leader_id
    return [
        BrokerRow(
            node,
            node_id == controller,
            sum(each.leader == node_id for each in partitions),
            sum(node_id in each.replicas for each in partitions),
            sum(node_id in each.replicas and node_id not in each.isr for each in partitions),
        )
        for node_id, node in state.described.nodes.items()
    ]


def broker_json(row: BrokerRow) -> dict[str, Any]:
    return {
        "broker": row.node.id,
        "host": row.node.host,
        "port": row.node.port,
        "rack": row.node.rack,
        "isFenced": row.node.is_fenced,
        "isController": row.is_controller,
        "leaders": row.leaders,
        "replicas": row.replicas,
        "outOfSync": row.out_of_sync,
    }


def complete_brokers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The ids of brokers that begin with `incomplete`."""

    async def ids(cluster: Cluster) -> list[str]:
        return [str(node_id) for node_id in (await describe_cluster(cluster)).nodes]

    return complete_from_cluster(ctx, incomplete, ids)
