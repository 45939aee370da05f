"""The `quorum` verb: its actions, each imported when used."""

import click

from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla quorum describe
  ottla quorum add 4 --endpoint controller-4:9093
  ottla quorum remove 1
  ottla quorum --bootstrap-server localhost:9092 describe --replication    Kafka's spelling
"""

_HERE = "ottla.cli.quorum"
ACTIONS = {
    "describe": (f"{_HERE}.describe", "describe", "Show leader, voters and observers, and how far each has got."),
    "add": (f"{_HERE}.add", "add", "Add a controller to the voters."),
    "remove": (f"{_HERE}.remove", "remove", "Remove a controller from the voters."),
}
ALIASES = {"add-controller": "add", "remove-controller": "remove"}


@click.command("quorum", cls=Actions, actions=ACTIONS, aliases=ALIASES, epilog=EXAMPLES)
def quorum() -> None:
    """Show the metadata quorum, and change its voters.

    Takes the actions of Kafka's kafka-metadata-quorum, too. To add and remove voters the cluster needs kraft.version 1: its
    controllers were formatted with --standalone or --initial-controllers.
    """
