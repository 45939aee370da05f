"""The `brokers` verb: its actions, each imported when used."""

import click

from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla brokers list
  ottla brokers describe 2
"""

_HERE = "ottla.cli.brokers"
ACTIONS = {
    "list": (f"{_HERE}.list", "list_brokers", "List brokers: states, addresses, racks, how many partitions each leads."),
    "describe": (f"{_HERE}.describe", "describe", "Show brokers with their log directories."),
}


@click.command("brokers", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def brokers() -> None:
    """List and describe the brokers of a cluster.

    The output is a table on a terminal, lines in a pipe, JSON with --json. `ottla configs` shows their settings.
    """
