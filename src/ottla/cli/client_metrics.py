"""`ottla client-metrics`: which metrics clients push to the cluster (KIP-714), and what they have pushed.

Lines in a pipe, flags and exit codes are those of kafka-client-metrics.
"""

from __future__ import annotations

import re
import urllib.request
from typing import Any

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.spelling import Actions
from ottla.client.admin.configs import (
    ConfigResource,
    ConfigResourceType,
    ResourceKey,
    alter_configs,
    describe_configs,
    list_client_metrics_resources,
)
from ottla.client.cluster import Cluster
from ottla.errors import OttlaError
from ottla.ids import Uuid, uuid_text

EXAMPLES = """\b
Examples:
  ottla client-metrics alter all --metrics '*' --interval 60000
  ottla client-metrics alter billing --metrics org.apache.kafka.producer. --match client_id=billing-.*
  ottla client-metrics list
  ottla client-metrics describe
  ottla client-metrics delete billing
  ottla client-metrics show http://localhost:9464       what clients have pushed to a node
"""
_HERE = "ottla.cli.client_metrics"
ACTIONS = {
    "list": (_HERE, "list_command", "List the subscriptions."),
    "describe": (_HERE, "describe", "Show what they ask for, and of which clients."),
    "alter": (_HERE, "alter", "Create or change a subscription."),
    "delete": (_HERE, "delete", "Delete a subscription."),
    "show": (_HERE, "show", "Show what clients have pushed to a node."),
}
SETTINGS = ("metrics", "interval.ms", "match")
WAIT_S = 30.0


@click.command("client-metrics", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def client_metrics() -> None:
    """Ask clients to push their metrics to the brokers, and look at what they have pushed.

    A broker of Ottla takes metrics if it has a metrics port. Takes the flags of Kafka's kafka-client-metrics, too.
    """


def _resource(name: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.CLIENT_METRICS, name)


def _chosen(named: str | None, flagged: str | None, action: str) -> str:
    if (named is None) == (flagged is None):
        raise click.UsageError(f"name one subscription, for example: ottla client-metrics {action} billing")
    return named or flagged or ""


name_argument = click.argument("named", required=False, metavar="[NAME]")
name_option = click.option("--name", "flagged", metavar="NAME", help="Kafka's spelling of NAME.")


@click.command("list")
@json_option
@cluster_options()
def list_command(settings: ClientSettings, as_json: bool) -> None:
    """List the subscriptions, one a line."""
    names = sorted(with_cluster(settings, list_client_metrics_resources))
    if as_json:
        print_json(names)
    for name in [] if as_json else names:
        say(name)


@click.command("describe")
@name_argument
@name_option
@json_option
@plain_option
@wide_option
@cluster_options()
def describe(settings: ClientSettings, named: str | None, flagged: str | None, as_json: bool, plain: bool) -> int:
    """Show a subscription, or all."""
    only = None if named is None and flagged is None else _chosen(named, flagged, "describe")

    async def work(cluster: Cluster) -> dict[str, dict[str, str]]:
        names = sorted(await list_client_metrics_resources(cluster))
        wanted: list[ResourceKey] = [_resource(each) for each in names if only in (None, each)]
        found = (await describe_configs(cluster, wanted)).raise_first() if wanted else {}
        return {key.name: {name: each.value or "" for name, each in sorted(entries.items())} for key, entries in found.items()}

    found = with_cluster(settings, work)
    if as_json:
        print_json(found)
    elif only is not None and not found:
        say(f"The client metric resource {only} doesn't exist and doesn't have dynamic config.")
    elif is_for_people(as_json, plain):
        rows = [
            (name, each.get("metrics", ""), each.get("interval.ms", ""), each.get("match", "")) for name, each in found.items()
        ]
        print_table(None, ("Subscription", "=Metrics", "#Interval ms", "=Match"), rows)
    else:
        for name, each in found.items():
            say(f"Client metrics configs for {name} are:")
            for setting, value in each.items():
                say(f"  {setting}={value}")
    return 0


@click.command("alter")
@name_argument
@name_option
@click.option("--generate-name", is_flag=True, help="Make up a name.")
@click.option("--metrics", metavar="PREFIXES", help="Prefixes of names, with commas between; `*` for all; empty for none.")
@click.option("--interval", metavar="MS", help="How often clients push, in milliseconds.  [default: 300000]")
@click.option("--match", metavar="WHAT=REGEX,...", help="Which clients: all must match whole.  [default: every client]")
@cluster_options()
def alter(
    settings: ClientSettings,
    named: str | None,
    flagged: str | None,
    generate_name: bool,
    metrics: str | None,
    interval: str | None,
    match: str | None,
) -> None:
    """Create a subscription or change it. An empty text sets a default again."""
    if generate_name and (named or flagged):
        raise click.UsageError("give a name or --generate-name, not both")
    given = {"metrics": metrics, "interval.ms": interval, "match": match}

    async def work(cluster: Cluster) -> str:
        name = uuid_text(Uuid(cluster.world.randomness.new_uuid())) if generate_name else _chosen(named, flagged, "alter")
        # None goes back to the default. A name alone makes no resource, as in Kafka.
        changes = {setting: value or None for setting, value in given.items() if value is not None}
        (await alter_configs(cluster, {_resource(name): changes})).raise_first()
        return name

    say(f"Altered client metrics config for {with_cluster(settings, work)}.")


@click.command("delete")
@name_argument
@name_option
@cluster_options()
def delete(settings: ClientSettings, named: str | None, flagged: str | None) -> None:
    """Delete a subscription: clients stop to push for it."""
    name = _chosen(named, flagged, "delete")

    async def work(cluster: Cluster) -> None:
        changes = dict.fromkeys(SETTINGS)
        (await alter_configs(cluster, {_resource(name): changes})).raise_first()

    with_cluster(settings, work)
    say(f"Deleted client metrics config for {name}.")


@click.command("show")
@click.argument("url", metavar="URL")
@click.option("--client", "client_id", metavar="ID", help="All numbers of the clients with this id.")
@json_option
@plain_option
@wide_option
def show(url: str, client_id: str | None, as_json: bool, plain: bool) -> None:
    """Show which clients push metrics to a node, or what a client has pushed.

    URL is where the node serves its metrics, such as http://localhost:9464.
    """
    page = f"{url.rstrip('/').removesuffix('/metrics/clients')}/metrics/clients"
    try:
        with urllib.request.urlopen(page, timeout=WAIT_S) as response:
            samples = read_samples(response.read().decode())
    except (OSError, ValueError) as error:
        raise OttlaError(f"{page} cannot be read: {error}; give the node's address and its ottla.metrics.port") from None
    if client_id is not None:
        chosen = [
            each for each in samples if each["labels"].get("client_id") == client_id and each["name"] != "kafka_client_info"
        ]
        for each in chosen:
            each["labels"].pop("client_id", None)
        if as_json:
            print_json(chosen)
            return
        rows = [
            (each["name"], ", ".join(f"{name}={text}" for name, text in each["labels"].items()), each["value"])
            for each in chosen
        ]
        print_table(None, ("Metric", "=Labels", "#Value"), rows)
        return
    counts: dict[str, int] = {}
    for each in samples:
        instance = each["labels"].get("client_instance_id", "")
        counts[instance] = counts.get(instance, 0) + (each["name"] != "kafka_client_info")
    clients = [
        each["labels"] | {"numbers": counts[each["labels"]["client_instance_id"]]}
        for each in samples
        if each["name"] == "kafka_client_info"
    ]
    if as_json:
        print_json(clients)
        return
    clients_shown = [
        (
            each["client_id"],
            each.get("software", ""),
            each.get("version", ""),
            each.get("address", ""),
            each["client_instance_id"],
            each["numbers"],
        )
        for each in clients
    ]
    print_table(None, ("Client", "Software", "Version", "Address", "~Instance", "#Numbers"), clients_shown)


_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


def read_samples(text: str) -> list[dict[str, Any]]:
    """The samples of a page in Prometheus's text format."""
    found = []
    for line in text.splitlines():
        if line.startswith("#") or (match := _SAMPLE.fullmatch(line)) is None:
            continue
        labels = {
            name: re.sub(r"\\.", lambda escaped: _ESCAPES.get(escaped[0], escaped[0]), value)
            for name, value in _LABEL.findall(match[2] or "")
        }
        found.append({"name": match[1], "labels": labels, "value": float(match[3])})
    return found
