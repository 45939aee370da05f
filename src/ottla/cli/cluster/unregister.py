"""`ottla cluster unregister`: says what the broker holds, asks, and removes its registration."""

from __future__ import annotations

from typing import NamedTuple

import click

from ottla.cli.brokers.rows import complete_brokers
from ottla.cli.common.options import cluster_options, yes_option
from ottla.cli.common.output import confirm, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.client.admin.cluster_state import unregister_broker
from ottla.client.health import ClusterState, cluster_state
from ottla.errors import OttlaError
from ottla.errors.texts import counted, listed

EXAMPLES = """\b
Examples:
  ottla cluster unregister 4                                           says what broker 4 holds, and asks
  ottla cluster unregister 4 --yes                                     in a script
  ottla cluster unregister --id 4 --bootstrap-server localhost:9092 --yes    Kafka's spelling
"""
_SHOWN = 5


class Held(NamedTuple):
    """What a broker holds."""

    replicas: list[str]
    led: list[str]
    only_here: list[str]
    """Partitions without another replica."""
    last_in_sync: list[str]
    """Partitions with other replicas, none of which is known to hold everything that was acknowledged."""
    is_voter: bool


@click.command("unregister", epilog=EXAMPLES)
@click.argument("broker", required=False, type=click.IntRange(0), shell_complete=complete_brokers)
@click.option("--id", "flagged", type=click.IntRange(0), metavar="BROKER", help="Kafka's spelling of BROKER.")
@click.option("--force", is_flag=True, help="Unregister a broker that is alive. An Ottla broker registers again at once.")
@yes_option
@cluster_options()
def unregister(settings: ClientSettings, broker: int | None, flagged: int | None, force: bool, yes: bool) -> None:
    """Remove a broker that is gone for good from the cluster's metadata.

    Stop it first, and move its replicas to other brokers: partitions keep a removed broker as a replica until they are
    reassigned. Says what the broker holds, and asks; without a terminal it needs --yes.
    """
    broker_id = flagged if broker is None else broker
    if broker_id is None:
        raise click.UsageError("name the broker, for example: ottla cluster unregister 4")
    state = with_cluster(settings, cluster_state)
    node = state.described.nodes.get(broker_id)
    if node is not None or not state.knows_fenced:  # the controller refuses a broker that is not registered, and says so
        if node is not None and not node.is_fenced and not force:
            raise OttlaError(
                f"broker {broker_id} at {node.host}:{node.port} is alive, so it was not unregistered. Stop it, and look at "
                "`ottla brokers list` until it is fenced. With --force it is unregistered now: it leads nothing until it "
                "registers again"
            )
        held = held_by(state, broker_id)
        for text in warnings(broker_id, held):
            warn(text)
        confirm(f"Unregister broker {broker_id}, which holds {counted(len(held.replicas), 'replica')}?", yes, needs_yes=True)
    with_cluster(settings, lambda cluster: unregister_broker(cluster, broker_id))
    say(f"Broker {broker_id} is no longer registered.")


def held_by(state: ClusterState, broker_id: int) -> Held:
    """The replicas and the vote of a broker."""
    held = Held([], [], [], [], state.quorum is not None and any(each.id == broker_id for each in state.quorum.voters))
    for topic, described in state.topics.items():
        for each in described.partitions:
            if broker_id not in each.replicas:
                continue
            name = f"{topic}-{each.partition}"
            held.replicas.append(name)
            if each.leader == broker_id:
                held.led.append(name)
            if len(each.replicas) == 1:
                held.only_here.append(name)
            elif not set(each.isr) - {broker_id}:
                held.last_in_sync.append(name)
    return held


def warnings(broker_id: int, held: Held) -> list[str]:
    """What to know before the broker is unregistered, the worst first."""
    said = []
    if held.only_here:
        said.append(
            f"broker {broker_id} has the only replica of {_some(held.only_here)}: nothing in there can be read without it. "
            "Start it and move them to other brokers first (ottla reassign)"
        )
    if held.last_in_sync:
        said.append(
            f"no other replica of {_some(held.last_in_sync)} is in sync: without broker {broker_id} there is no leader, or "
            "acknowledged records are lost. Start it and wait until the others are in sync"
        )
    if held.replicas:
        leads = f" and leads {len(held.led):,}" if held.led else ""
        said.append(
            f"broker {broker_id} holds {counted(len(held.replicas), 'replica')}{leads}: they stay under-replicated until they "
            "are reassigned (ottla reassign generate --brokers with the brokers that stay)"
        )
    if held.is_voter:
        said.append(
            f"node {broker_id} is a voter of the metadata quorum, and stays one: `ottla quorum remove {broker_id}` takes its "
            "vote"
        )
    return said


def _some(names: list[str]) -> str:
    return listed(names, _SHOWN)
