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
    default="logs",
    show_default=True,
    envvar="LOG_DIR",
    help="Where dated log files go (also: LOG_DIR).",
)
def start(file: Path, overrides: tuple[str, ...], log_dir: Path) -> None:
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
    configure_logging(level="INFO", directory=log_dir)
    run_node(settings, lambda node: None)  # the node's own log line names its address
