"""Flags that actions of `ottla pipeline` share, and the session that they run on."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from ottla.cli.common.output import say
from ottla.cli.common.settings import (
    CONFIG_VARIABLE,
    ENVIRONMENT_VARIABLE,
    build_settings,
    client_properties,
    read_properties,
)
from ottla.config.client.kinds import CONSUMER, PRODUCER
from ottla.errors import OttlaError
from ottla.spark.pipelines import storage
from ottla.spark.pipelines.environments import ENVIRONMENT, Environment
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.resolution import wishes_of
from ottla.spark.pipelines.spec import Spec
from ottla.spark.places import check_place
from ottla.spark.session import active_session, local_session, require_pyspark, ui_address

F = TypeVar("F", bound=Callable[..., Any])


def _importable(context: click.Context, parameter: click.Parameter, place: str) -> str:
    """Let this process import the pipeline's modules too: a function that fetches tokens may be in one."""
    folder = str(Path(place).absolute())
    if folder not in sys.path:
        sys.path.append(folder)
    return place


pipeline_argument = click.argument("place", default=".", metavar="[FOLDER]", callback=_importable)


class Clients(NamedTuple):
    """The settings of TLS and of the login that flags and variables give to a pipeline's clients, and their cluster."""

    servers: str | None
    flag: Mapping[str, str]
    """Of --command-config: over those of the pipeline's files."""
    variables: Mapping[str, str]
    """Of OTTLA_COMMAND_CONFIG, OTTLA_SECURITY_PROTOCOL and the like: for what those files leave open."""

    def of(self, spec: Spec) -> Spec:
        """The pipeline with them."""
        return spec.with_bootstrap(self.servers).with_clients(self.flag, self.variables)


def cluster_option(function: F) -> F:
    """Adds --bootstrap-server and --command-config; the function gets `clients`."""

    @wraps(function)
    def with_clients(*, bootstrap_server: str | None, command_config: str | None, **rest: Any) -> Any:
        given = read_properties(command_config) if command_config else {}
        named = os.environ.get(CONFIG_VARIABLE) if command_config is None else None
        properties = read_properties(named) if named else given
        servers = bootstrap_server or given.get("bootstrap.servers")
        known = frozenset({*CONSUMER.table, *PRODUCER.table})
        found = client_properties(build_settings(servers, properties, known))
        secured = {name: value for name, value in found.items() if name.startswith(("security.", "sasl.", "ssl."))}
        flag = {name: value for name, value in secured.items() if name in given}
        variables = {name: value for name, value in secured.items() if name not in given}
        return function(clients=Clients(servers, flag, variables), **rest)

    decorated: Any = click.option(
        "--command-config",
        metavar="FILE",
        help="A properties file with the clients' settings of TLS and SASL, over those of the pipeline's files.  "
        f"[default: ${CONFIG_VARIABLE} and the other variables, under those files]",
    )(with_clients)
    return click.option(  # type: ignore[no-any-return]  # click's decorators return the function they decorate
        "-b",
        "--bootstrap-server",
        "bootstrap_server",
        envvar=ENVIRONMENT_VARIABLE,
        metavar="HOST:PORT,…",
        help=f"Use this cluster instead of kafka.bootstrap.servers in spark-pipeline.yml.  [default: ${ENVIRONMENT_VARIABLE}]",
    )(decorated)


JSON_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark prints an error as JSON with Java's trace to these, on standard error, before it raises it."""
REDACTED = "(?i)secret|password|passphrase|token|access[.]?key|jaas|credential|keystore[.]key"
"""Spark hides the values of settings and options with such names in its log; by default it does not know all of Kafka's."""


def environment_options(function: F) -> F:
    """Adds --env, --set and -p; the function gets `environment`."""

    @wraps(function)
    def with_environment(*, env: str | None, settings: tuple[str, ...], parameters: tuple[str, ...], **rest: Any) -> Any:
        values = {}
        for text in parameters:
            name, equals, value = text.partition("=")
            if not equals or not name:
                raise click.UsageError(f"-p {name} has no value: write it as -p NAME=value")
            values[name] = value
        return function(environment=Environment(env or None, settings, values), **rest)

    decorated: Any = click.option(
        "-p",
        "--param",
        "parameters",
        multiple=True,
        metavar="NAME=VALUE",
        help="The value of ${NAME} in the files. Repeatable.",
    )(with_environment)
    decorated = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A value over those of the files, such as sources.orders.subscribe=orders-2. Repeatable.",
    )(decorated)
    return click.option(  # type: ignore[no-any-return]  # click's decorators return the function they decorate
        "-e",
        "--env",
        "env",
        envvar=ENVIRONMENT,
        metavar="NAME",
        help=f"Merge ottla.NAME.yml over the files.  [default: ${ENVIRONMENT}]",
    )(decorated)


def session_options(function: F) -> F:
    """Adds --master and --remote."""
    decorated: Any = click.option("--remote", metavar="sc://HOST:PORT", help="Run on a Spark Connect server.")(function)
    return click.option(  # type: ignore[no-any-return]  # click's decorators return the function they decorate
        "--master", metavar="URL", help="Where Spark runs: local[4], spark://…, yarn, k8s://…  [default: local[*]]"
    )(decorated)


def _metrics_address(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{text} is no port: write 9464, or 0.0.0.0:9464 for all addresses of this machine")
    return host.strip("[]") or "127.0.0.1", int(port)


metrics_option = click.option(
    "--metrics-port",
    "metrics_address",
    callback=_metrics_address,
    metavar="[HOST:]PORT",
    help="Serve Prometheus metrics, /health and /ready here.  [default host: 127.0.0.1]",
)
ui_option = click.option(
    "--ui/--no-ui", "has_ui", default=True, help="Serve Spark's UI, from port 4040 on.  [default: --ui]", show_default=False
)


@contextmanager
def session_for(
    spec: Spec, master: str | None, remote: str | None, *, quiet: bool = False, has_ui: bool = False
) -> Iterator[Any]:
    """A Spark session for a pipeline; its log goes to a file. Errors that are raised meanwhile show no secrets.

    `has_ui`: Spark's UI is on, unless the pipeline's settings switch it off, and its address is shown.
    """
    if master is not None and remote is not None:
        raise click.UsageError("--master and --remote exclude each other: give one of them")
    check_place(master, remote)
    require_pyspark()
    if (active := active_session()) is not None:
        with _without_secrets(spec), _json_traces_to(storage.log_file(spec)):
            yield active
        return
    log = storage.begin_log(spec)
    if not quiet:
        say(f"Starting Spark on {remote or master or 'this machine'}; its log is {shown(log)}", err=True)
    # A server has a warehouse of its own, which its clients cannot change.
    warehouse = {} if remote else {"spark.sql.warehouse.dir": str(log.parent / "warehouse"), "spark.redaction.regex": REDACTED}
    # Spark gets its settings as arguments of a process, which others can see. `prepared` sets those of clients later.
    settings = warehouse | {key: value for key, value in spec.configuration.items() if key.startswith("spark.")}
    spark = local_session(
        spec.name,
        master=master,
        remote=remote,
        configuration=settings,
        log_file=log,
        ships=wishes_of(spec),
        notice=lambda text: say(text, err=True),
        has_ui=has_ui,
    )
    if has_ui and not quiet and (address := ui_address(spark)) is not None:
        say(f"Spark's UI is at {address}", err=True)
    try:
        with _without_secrets(spec), _json_traces_to(log):
            yield spark
    finally:
        spark.stop()
        _mask_file(log, spec)


def _mask_file(path: Path, spec: Spec) -> None:
    """Take secrets out of what Spark has logged: an exception may have one in its text."""
    if not spec.secrets or not path.exists():
        return
    masked = path.with_suffix(".masked")
    with open(path, encoding="utf-8", errors="replace") as given, open(masked, "w", encoding="utf-8") as made:
        made.writelines(spec.masked(line) for line in given)
    masked.replace(path)


@contextmanager
def _without_secrets(spec: Spec) -> Iterator[None]:
    try:
        yield
    except OttlaError as error:
        text = str(error)
        if (shown_text := spec.masked(text)) == text:
            raise
        made = PipelineError(shown_text)
        made.flow = getattr(error, "flow", None)
        raise made from None


@contextmanager
def _json_traces_to(path: Path) -> Iterator[None]:
    """While this lasts, what PySpark logs about errors goes to a file: our own sentence follows on the terminal."""
    from pyspark.logger import PySparkLogger

    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    loggers = [PySparkLogger.getLogger(name) for name in JSON_LOGGERS]
    before = [(each, each.handlers[:], each.propagate) for each in loggers]
    for each in loggers:
        each.handlers[:], each.propagate = [handler], False
    try:
        yield
    finally:
        handler.close()
        for each, handlers, propagate in before:
            each.handlers[:], each.propagate = handlers, propagate


def shown(path: Path) -> str:
    """A path as short as it can be: relative to the working directory if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
