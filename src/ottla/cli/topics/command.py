"""The `topics` verb: its actions, each imported when used."""

import click

from ottla.cli.common.options import ZOOKEEPER, retired
from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla topics create orders --partitions 3
  ottla topics list
  ottla topics describe orders
  ottla topics alter orders --partitions 6
  ottla topics delete orders
  ottla topics --create --topic orders --bootstrap-server localhost:9092    Kafka's spelling
"""

_HERE = "ottla.cli.topics"
ACTIONS = {
    "create": (f"{_HERE}.create", "create", "Create topics."),
    "list": (f"{_HERE}.list", "list_topics", "List all topics."),
    "describe": (f"{_HERE}.describe", "describe", "Show partitions, replicas and settings of topics."),
    "alter": (f"{_HERE}.alter", "alter", "Add partitions to topics."),
    "delete": (f"{_HERE}.delete", "delete", "Delete topics and their records."),
}


@click.command("topics", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
@retired("--zookeeper", ZOOKEEPER)
def topics() -> None:
    """Create, list, describe, alter and delete topics.

    Takes the flags of Kafka's kafka-topics, too. The output is a table on a terminal, Kafka's lines in a pipe, JSON with
    --json. `ottla topics ACTION --help` shows the flags of an action.
    """
