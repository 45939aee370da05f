"""`ottla server`: runs a node from a `server.properties` written for Kafka, or from the variables of a container."""

from __future__ import annotations

import gc
import logging
from pathlib import Path

import click

from ottla.cli.common.output import print_data
from ottla.cli.common.references import plain_secrets, resolved
from ottla.cli.common.spelling import Commands
from ottla.cli.node.up import parse_overrides
from ottla.config.java_properties import format_properties, parse_properties

logger = logging.getLogger("ottla.node")

EPILOG = """\b
Examples:
  ottla storage format --standalone -t $(ottla storage random-uuid) -c server.properties
  ottla server start server.properties
  ottla server start server.properties --override log.retention.hours=24
  KAFKA_NODE_ID=1 KAFKA_LOG_DIRS=/tmp/data ottla server start --from-env
"""


@click.group(cls=Commands)
def server() -> None:
    """Run a node from a file of settings."""


FILE = click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))


@server.command(epilog=EPILOG)
@FILE
@click.option(
    "--from-env",
    is_flag=True,
    help="For containers: take the settings from KAFKA_* variables, as Apache Kafka's image does, over FILE, over defaults; "
    "format new log directories. Without FILE it is server.properties in /mnt/shared/config or /etc/kafka, if there is one.",
)
@click.option("--override", "overrides", multiple=True, metavar="NAME=VALUE", help="A setting that overrides the file's.")
@click.option(
    "--log-dir",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="LOG_DIR",
    help="Where dated log files go (also: LOG_DIR).  [default: logs; none with --service or --from-env]",
)
@click.option(
    "--format-new",
    is_flag=True,
    help="Format log directories that are new: for a node that is a cluster of its own, as `ottla up`.",
)
@click.option("--service", is_flag=True, help="For service managers: no log files; the journal gets the level of each line.")
def start(
    file: Path | None, from_env: bool, overrides: tuple[str, ...], log_dir: Path | None, format_new: bool, service: bool
) -> None:
    """Run a node from FILE, a server.properties written for Kafka, until Ctrl-C or SIGTERM."""
    gc.disable()  # see `up`
    if from_env:
        from ottla.cli.node.container import start_container

        start_container(file, parse_overrides(overrides), log_dir)
        return
    if file is None:
        raise click.UsageError("name the file of the node's settings, or add --from-env to take them from KAFKA_* variables")
    from ottla.cli.logs import configure_logging
    from ottla.cli.node.companions import services_beside
    from ottla.cli.node.process import run_node

    try:
        settings = resolved({**parse_properties(file.read_bytes()), **parse_overrides(overrides)})
    except ValueError as broken:
        raise click.UsageError(f"{file} is not a properties file: {broken}") from None
    configure_logging(level="INFO", directory=log_dir if service else log_dir or Path("logs"), for_journal=service)
    for name in plain_secrets(overrides):
        logger.warning(
            "%s is on the command line, where others on this machine can read it: write ${env:NAME} or ${file:PATH:KEY}, or "
            "put it into %s",
            name,
            file,
        )
    with services_beside(settings) as ready:
        run_node(settings, ready, format_new=format_new)  # the node's own log line names its address


@server.command()
@FILE
def settings(file: Path | None) -> None:
    """Print the server.properties that `ottla server start --from-env` would run with, here and now. Passwords are in it."""
    from ottla.cli.node.container import from_environment

    container, _ = from_environment(file)
    print_data(format_properties(dict(sorted(container.settings.items()))).decode("latin-1").splitlines())
