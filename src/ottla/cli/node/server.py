"""`ottla server start FILE`: runs a node from a `server.properties` written for Kafka."""

from __future__ import annotations

import gc
from pathlib import Path

import click

from ottla.cli.common.spelling import Commands
from ottla.cli.node.up import parse_overrides

EPILOG = """\b
Examples:
  ottla storage format --standalone -t $(ottla storage random-uuid) -c server.properties
  ottla server start server.properties
  ottla server start server.properties --override log.retention.hours=24
"""


@click.group(cls=Commands)
def server() -> None:
    """Run a node from a file of settings."""


@server.command(epilog=EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--override", "overrides", multiple=True, metavar="NAME=VALUE", help="A setting that overrides the file's.")
@click.option(
    "--log-dir",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="LOG_DIR",
    help="Where dated log files go (also: LOG_DIR).  [default: logs; none with --service]",
)
@click.option(
    "--format-new",
    is_flag=True,
    help="Format log directories that are new: for a node that is a cluster of its own, as `ottla up`.",
)
@click.option("--service", is_flag=True, help="For service managers: no log files; the journal gets the level of each line.")
def start(file: Path, overrides: tuple[str, ...], log_dir: Path | None, format_new: bool, service: bool) -> None:
    """Run a node from FILE, a server.properties written for Kafka, until Ctrl-C or SIGTERM."""
    gc.disable()  # see `up`
    from ottla.cli.common.references import resolved
    from ottla.cli.logs import configure_logging
    from ottla.cli.node.process import run_node
    from ottla.config.java_properties import parse_properties

    try:
        settings = resolved({**parse_properties(file.read_bytes()), **parse_overrides(overrides)})
    except ValueError as broken:
        raise click.UsageError(f"{file} is not a properties file: {broken}") from None
    configure_logging(level="INFO", directory=log_dir if service else log_dir or Path("logs"), for_journal=service)
    run_node(settings, lambda node: None, format_new=format_new)  # the node's own log line names its address
