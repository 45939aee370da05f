"""The `brokers` verb: its actions, each imported when used."""

import click

from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla brokers list
  ottla brokers describe 2
  ottla brokers api-versions
"""

_HERE = "ottla.cli.brokers"
ACTIONS = {
    "list": (f"{_HERE}.list", "list_brokers", "List brokers: states, addresses, racks, how many partitions each leads."),
    "describe": (f"{_HERE}.describe", "describe", "Show brokers with their log directories."),
    "api-versions": (f"{_HERE}.api_versions", "api_versions", "Show which versions of each API brokers serve."),
}


@click.command("brokers", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def brokers() -> None:
    """List and describe the brokers of a cluster.

    The output is a table on a terminal, lines in a pipe, JSON with --json. `ottla configs` shows their settings.
    """
