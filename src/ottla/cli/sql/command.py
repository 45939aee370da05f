"""The `sql` verb: options, and whether a text is run or a shell begins."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ottla.cli.common.options import cluster_options, wide_option
from ottla.cli.common.output import is_typed, say
from ottla.cli.common.settings import ClientSettings, client_properties
from ottla.cli.common.waiting import wait_option
from ottla.cli.schemas import URL as REGISTRY_URL
from ottla.cli.schemas import URL_VARIABLE as REGISTRY_VARIABLE
from ottla.cli.sql.results import Printer
from ottla.cli.sql.session import Session, TopicsOfCluster, log_path
from ottla.cli.sql.shell import Completer, Shell, history_path, run_all, with_history
from ottla.config.client.kinds import CONSUMER, PRODUCER
from ottla.spark.sql.catalog import Catalog, default_path
from ottla.spark.sql.runner import Runner
from ottla.spark.sql.settings import Settings
from ottla.spark.warm import is_usual, stop_keeper

EXAMPLES = """\b
Examples:
  ottla sql                                             a shell; help shows its statements
  ottla sql "SELECT * FROM orders LIMIT 10"             a topic as it is
  ottla sql "CREATE STREAM orders (id BIGINT, amount DOUBLE) WITH (topic='orders', format='json')"
  ottla sql "SELECT id % 10 AS shard, sum(amount) FROM orders GROUP BY 1" --json
  ottla sql "SET 'auto.offset.reset'='earliest'; SELECT * FROM orders EMIT CHANGES LIMIT 5"
  ottla sql -f report.sql -b broker:9092 --master spark://cluster:7077
"""


@click.command("sql", epilog=EXAMPLES)
@click.argument("statements", required=False)
@click.option("-f", "--file", "path", metavar="FILE", help="Run the statements of a file; - is standard input.")
@click.option("--json", "as_json", is_flag=True, help="Rows as JSON objects, one per line, for programs.")
@click.option(
    "--max-rows",
    "rows_max",
    type=click.IntRange(1),
    metavar="N",
    help="How many rows of a result are shown.  [default: 1000 on a terminal, else all]",
)
@click.option(
    "--catalog",
    "catalog_path",
    metavar="PATH",
    help="The file that remembers streams and tables.  [default: one for each cluster in ~/.config/ottla/sql]",
)
@click.option(
    "-r",
    "--registry",
    envvar=REGISTRY_VARIABLE,
    default=REGISTRY_URL,
    show_default=True,
    metavar="URL",
    help=f"The schema registry, for streams with format='avro'; ${REGISTRY_VARIABLE} gives it too.",
)
@click.option("--master", metavar="URL", help="Where Spark runs: local[4], spark://…, yarn, k8s://…  [default: local[*]]")
@click.option("--remote", metavar="sc://HOST:PORT", help="Run on a Spark Connect server.")
@click.option(
    "--warm/--no-warm",
    default=None,
    help="Leave Spark behind for the next call, for 10 minutes after the last one.  [default: on a terminal]",
)
@click.option("--stop", is_flag=True, help="End the Spark that an earlier call has left behind.")
@wait_option("10s")
@wide_option
@cluster_options(known=frozenset({*CONSUMER.table, *PRODUCER.table}))
def sql(
    settings: ClientSettings,
    statements: str | None,
    path: str | None,
    as_json: bool,
    rows_max: int | None,
    catalog_path: str | None,
    registry: str,
    master: str | None,
    remote: str | None,
    warm: bool | None,
    stop: bool,
    wait_s: float,
) -> int:
    """Query topics with SQL, on Spark: one result, a live result, or a shell.

    Without STATEMENTS and FILE a shell begins; statements in a pipe are run. Declared streams and tables are remembered.
    Needs Spark: pip install 'ottla[spark]'.
    """
    if stop:
        say("Spark has ended." if stop_keeper() else "There is no Spark that was left behind.")
        return 0
    text = _text(statements, path)
    if master is not None and remote is not None:
        raise click.UsageError("--master and --remote exclude each other: give one of them")
    servers = settings.properties.get("bootstrap.servers")
    if not servers:
        raise click.UsageError("SQL reads topics from brokers: give --bootstrap-server, not bootstrap.controllers alone")
    # A shell and a live result may run for hours: then the JVM's second compiler pays off.
    is_brief = text is not None and "EMIT" not in text.upper() and "PRINT" not in text.upper()
    if warm is None:
        warm = is_brief and is_usual()
    session = Session(master=master, remote=remote, log=log_path(), is_brief=is_brief, is_warm=warm)
    cluster = TopicsOfCluster(settings, wait_s)
    catalog = Catalog(Path(catalog_path) if catalog_path else default_path(servers))
    runner = Runner(
        catalog=catalog,
        settings=Settings(client_properties(settings), registry=registry),
        cluster=cluster,
        screen=Printer(as_json=as_json, rows_max=rows_max),
        start_spark=session.start,
        is_shell=text is None,
    )
    try:
        if text is not None:
            return run_all(text, runner, session)
        topics = cluster.topics()  # brokers that are away are waited for, or an error, before Spark starts
        say(f"SQL over {len(topics)} topics at {servers}. Statements end with ;, help explains them, Ctrl-D ends the shell.")
        with_history(Shell(runner, session).run, Completer(catalog, TopicsOfCluster(settings).topics), history_path())
        return 0
    finally:
        runner.close()
        session.stop()


def _text(statements: str | None, path: str | None) -> str | None:
    """The statements to run; None for a shell."""
    if statements is not None and path is not None:
        raise click.UsageError("give statements or --file, not both")
    if statements is not None:
        return statements
    if path is None:
        return None if is_typed() else sys.stdin.read()
    if path == "-":
        return sys.stdin.read()
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"--file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"--file {path} is not UTF-8 text") from None
