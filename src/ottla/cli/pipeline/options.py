"""Flags that actions of `ottla pipeline` share, and the session that they run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from ottla.cli.common.output import say
from ottla.cli.common.settings import ENVIRONMENT_VARIABLE
from ottla.spark.pipelines import storage
from ottla.spark.pipelines.shipped import wishes_of
from ottla.spark.pipelines.spec import Spec
from ottla.spark.places import check_place

F = TypeVar("F", bound=Callable[..., Any])

pipeline_argument = click.argument("place", default=".", metavar="[FOLDER]")
bootstrap_option = click.option(
    "-b",
    "--bootstrap-server",
    "bootstrap_server",
    envvar=ENVIRONMENT_VARIABLE,
    metavar="HOST:PORT,…",
    help=f"Use this cluster instead of kafka.bootstrap.servers in spark-pipeline.yml.  [default: ${ENVIRONMENT_VARIABLE}]",
)


def session_options(function: F) -> F:
    """Adds --master and --remote."""
    decorated: Any = click.option("--remote", metavar="sc://HOST:PORT", help="Run on a Spark Connect server.")(function)
    return click.option(  # type: ignore[no-any-return]  # click's decorators return the function they decorate
        "--master", metavar="URL", help="Where Spark runs: local[4], spark://…, yarn, k8s://…  [default: local[*]]"
    )(decorated)


@contextmanager
def session_for(spec: Spec, master: str | None, remote: str | None, *, quiet: bool = False) -> Iterator[Any]:
    """A Spark session for a pipeline; its log goes to a file."""
    from ottla.spark.session import active_session, local_session, require_pyspark

    if master is not None and remote is not None:
        raise click.UsageError("--master and --remote exclude each other: give one of them")
    check_place(master, remote)
    require_pyspark()
    if (active := active_session()) is not None:
        yield active
        return
    log = storage.begin_log(spec)
    if not quiet:
        say(f"Starting Spark on {remote or master or 'this machine'}; its log is {shown(log)}", err=True)
    # A server has a warehouse of its own, which its clients cannot change.
    warehouse = {} if remote else {"spark.sql.warehouse.dir": str(log.parent / "warehouse")}
    settings = warehouse | spec.configuration
    spark = local_session(
        spec.name,
        master=master,
        remote=remote,
        configuration=settings,
        log_file=log,
        ships=wishes_of(spec),
        notice=lambda text: say(text, err=True),
    )
    try:
        yield spark
    finally:
        spark.stop()


def shown(path: Path) -> str:
    """A path as short as it can be: relative to the working directory if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
