"""The `configs` verb: its actions, each imported when used."""

import click

from ottla.cli.common.options import ZOOKEEPER, retired
from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla configs describe topic orders
  ottla configs describe broker 1 --all
  ottla configs alter topic orders --set retention.ms=86400000 --unset segment.ms
  ottla configs alter broker-defaults --set log.retention.ms=86400000
  ottla configs --alter --entity-type topics --entity-name orders --add-config retention.ms=86400000
                                                      Kafka's spelling
"""

ACTIONS = {
    "describe": ("ottla.cli.configs.describe", "describe", "Show settings, where their values come from, and what they mean."),
    "alter": ("ottla.cli.configs.alter", "alter", "Set and unset settings."),
}


@click.command("configs", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
@retired("--zookeeper", ZOOKEEPER)
def configs() -> None:
    """Show and change settings of topics, brokers and groups.

    Takes the flags of Kafka's kafka-configs, too. The output is a table on a terminal, Kafka's lines in a pipe, JSON with
    --json. `ottla configs ACTION --help` shows the flags of an action.
    """
