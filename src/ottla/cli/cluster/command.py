"""The `cluster` verb: its actions, each imported when used."""

import click

from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla cluster describe
  ottla cluster describe --check            exit code 1 if anything is wrong
  ottla cluster id
  ottla cluster unregister 4
"""

_HERE = "ottla.cli.cluster"
ACTIONS = {
    "describe": (f"{_HERE}.describe", "describe", "Show brokers, controller and what is wrong."),
    "id": (f"{_HERE}.identity", "identity", "Print the id of the cluster."),
    "unregister": (f"{_HERE}.unregister", "unregister", "Remove a broker that is gone for good."),
}
ALIASES = {"cluster-id": "id"}


@click.command("cluster", cls=Actions, actions=ACTIONS, aliases=ALIASES, epilog=EXAMPLES)
def cluster() -> None:
    """Show the cluster and what is wrong with it, and remove brokers.

    Takes the actions of Kafka's kafka-cluster, too. `ottla cluster ACTION --help` shows the flags of an action.
    """
