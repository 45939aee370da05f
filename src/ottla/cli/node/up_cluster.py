"""`ottla up --nodes N`: the settings of the nodes, and what is printed when they are ready."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import click

from ottla.broker.cluster_settings import REPLICAS_MAX, cluster_settings
from ottla.cli.common.output import escape, print_json, warn
from ottla.cli.common.settings import ENVIRONMENT_VARIABLE
from ottla.cli.node.cluster import Child, added_nodes, run_cluster
from ottla.cli.node.cluster_ports import default_ports
from ottla.env.real.ports import ReservedPorts

OWN_SETTINGS = frozenset({"node.id", "listeners", "advertised.listeners", "log.dirs", "log.dir", "controller.quorum.voters"})
"""Settings that differ from node to node, so that `--set` cannot give one value to all."""


def up_cluster(
    host: str,
    port: int,
    count: int,
    data: Path,
    overrides: Mapping[str, str],
    metrics_port: int | None,
    log_dir: Path | None,
    level: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run `count` nodes until a signal stops them."""
    for name in sorted(OWN_SETTINGS & overrides.keys()):
        raise click.UsageError(f"--set {name}: with --nodes each node has its own; use --host, --port and --data instead")
    try:
        ports = default_ports(port, count) if port else []
    except ValueError as no_room:
        raise click.UsageError(str(no_room)) from None
    if count % 2 == 0:
        warn(f"--nodes {count}: a quorum of {count} survives no more failures than one of {count - 1}; prefer an odd number")

    def metrics(node_id: int) -> dict[str, str]:
        """The port of a node's metrics, if they are wanted: one after the other, or any that are free."""
        if metrics_port is None:
            return {}
        return {"ottla.metrics.port": str(metrics_port + node_id - 1 if metrics_port else 0)}

    def tell(children: list[Child]) -> None:
        if as_json or not quiet:
            _tell(children, data, as_json)

    with closing(ReservedPorts(host, 0 if ports else 2 * count)) as free:
        ports = ports or list(zip(free.ports[:count], free.ports[count:], strict=True))
        voters = [{**settings, **overrides} for settings in cluster_settings(host, ports, str(data))]

        for settings in voters:
            settings |= metrics(int(settings["node.id"]))

        def new_node(node_id: int) -> dict[str, str]:
            return further_node(voters[0], host, port and port + node_id - 1, node_id, data) | metrics(node_id)

        nodes = [*voters, *(new_node(each) for each in added_nodes(data) if each > count)]
        asyncio.run(run_cluster(nodes, data, level, log_dir, tell, new_node))


def further_node(voter: Mapping[str, str], host: str, port: int, node_id: int, data: Path) -> dict[str, str]:
    """The settings of a broker that is added to the voters. `port` 0: any that is free."""
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return {
        **voter,
        "process.roles": "broker",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{host}:{port}",
        "log.dirs": f"{data}/node-{node_id}",
    }


def _data_flag(data: Path) -> str:
    return "" if data == Path("ottla-data").resolve() else f" --data {escape(str(data))}"


def _replication(count: int) -> str:
    return f"New topics have {min(count, REPLICAS_MAX)} replicas, spread over the nodes: one node may be down."


def _tell(children: list[Child], data: Path, as_json: bool) -> None:
    servers = ",".join(child.bootstrap_servers for child in children)
    cluster_id = children[0].cluster_id
    if as_json:
        nodes = [
            {"node_id": child.node_id, "bootstrap_servers": child.bootstrap_servers, "pid": child.process.pid}
            for child in children
        ]
        print_json({"bootstrap_servers": servers, "cluster_id": cluster_id, "data": str(data), "nodes": nodes})
        return
    up_at = f"{click.style(servers, bold=True)} (cluster {cluster_id}; data in {escape(str(data))})"
    click.echo(  # noqa: TID251  # several lines, and the names in them are escaped
        f"""
A cluster of {len(children)} Ottla nodes is up at {up_at}
{_replication(len(children))}

Try next, in another terminal:
  export {ENVIRONMENT_VARIABLE}={servers}
  ottla topics create greetings --partitions 6
  ottla topics describe greetings
  echo hello | ottla produce greetings
  ottla up restart 2{_data_flag(data)}
or point any Kafka client at {servers}. Ctrl-C stops all nodes.
"""
    )
