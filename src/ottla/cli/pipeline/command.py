"""The `pipeline` verb: its actions, each imported when used."""

import click

from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla pipeline init orders
  ottla pipeline validate orders
  ottla pipeline run orders
  ottla pipeline run orders --schedule 'every 30s'
  ottla pipeline run orders --env prod
  ottla pipeline backfill orders --from 2026-01-31T12:00 --to 2026-01-31T14:00
  ottla pipeline describe orders
  ottla pipeline test orders
  ottla pipeline transactions
"""

_HERE = "ottla.cli.pipeline"
ACTIONS = {
    "init": (f"{_HERE}.init", "init", "Write a working pipeline to begin with."),
    "validate": (f"{_HERE}.validate", "validate", "Find mistakes without running anything."),
    "run": (f"{_HERE}.run", "run", "Run a pipeline; continues where the last run stopped."),
    "backfill": (f"{_HERE}.backfill", "backfill", "Read a range again into the same sinks, once."),
    "describe": (f"{_HERE}.describe", "describe", "Show flows, sources and sinks, and where the offsets are."),
    "test": (f"{_HERE}.test", "test", "Run a pipeline's own tests against a broker of their own."),
    "transactions": (f"{_HERE}.transactions", "transactions", "List and end what exactly-once sinks have left open."),
}


@click.command("pipeline", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def pipeline() -> None:
    """Data pipelines on Spark: topics in, transform, topics and tables out.

    A pipeline is a folder of pyspark.pipelines files with a spark-pipeline.yml and an ottla.yml. `ottla pipeline ACTION --help`
    shows the flags of an action.
    """
