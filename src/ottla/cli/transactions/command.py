"""The `transactions` verb: its actions, each imported when used."""

import click

from ottla.cli.common.options import ZOOKEEPER, retired
from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla transactions list
  ottla transactions describe payments
  ottla transactions describe-producers orders:0
  ottla transactions find-hanging --topic orders
  ottla transactions abort orders:0 --start-offset 1042
  ottla transactions --bootstrap-server localhost:9092 describe --transactional-id payments    Kafka's spelling
"""

_HERE = "ottla.cli.transactions"
ACTIONS = {
    "list": (f"{_HERE}.list", "list_transactions", "List transactional ids and their states."),
    "describe": (f"{_HERE}.describe", "describe", "Show the transaction of a transactional id."),
    "describe-producers": (f"{_HERE}.describe_producers", "describe_producers", "Show the producers of a partition."),
    "find-hanging": (f"{_HERE}.find_hanging", "find_hanging", "Find open transactions that no coordinator will end."),
    "abort": (f"{_HERE}.abort", "abort", "Abort a hanging transaction in one partition."),
    "force-terminate": (f"{_HERE}.force_terminate", "force_terminate", "Abort the open transaction of a transactional id."),
}
ALIASES = {"forceTerminateTransaction": "force-terminate"}


@click.command("transactions", cls=Actions, actions=ACTIONS, aliases=ALIASES, epilog=EXAMPLES)
@retired("--zookeeper", ZOOKEEPER)
def transactions() -> None:
    """List, describe and abort transactions.

    Actions and flags are those of Kafka's kafka-transactions. The output is a table on a terminal, Kafka's lines in a pipe,
    JSON with --json. `ottla transactions ACTION --help` shows the flags of an action.
    """
