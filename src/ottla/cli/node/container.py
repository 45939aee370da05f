"""`ottla server start --from-env`: a node in a container, from `KAFKA_*` variables as in Apache Kafka's image, a file, or both.

Variables win over the file, the file wins over the defaults, setting by setting. The names of variables are Apache's:
`KAFKA_LOG_RETENTION_HOURS` is log.retention.hours; `__` stands for `_` and `___` for `-`. `OTTLA_METRICS_PORT` is
ottla.metrics.port, as `KAFKA_OTTLA_METRICS_PORT` is. Variables that Apache's images keep for the JVM, and those that
Kubernetes adds for a service that is called kafka, are no settings. `complete` adds what is missing for a node that can be
reached.

The log directories are formatted at the first start. All in one process: a start of Python takes longer than the rest.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from ottla.broker.loggers import PythonLoggers, logger_here
from ottla.cli.common.output import say
from ottla.cli.common.references import resolved
from ottla.config.java_properties import parse_properties
from ottla.errors import OttlaError

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.config.broker import BrokerConfig

FILES: Final = (
    "/mnt/shared/config/server.properties",
    "/etc/kafka/docker/server.properties",
    "/etc/kafka/server.properties",
    "/opt/kafka/config/server.properties",
)
"""Where images of Kafka read a mounted file from. The first that exists counts."""

CLUSTER_ID: Final = "5L6g3nShT-eMCtK--X86sw"
"""Of a new cluster without a CLUSTER_ID: that of Apache's image, the same on all nodes."""

DATA: Final = "/var/lib/kafka/data"
CLIENTS_PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
METRICS_PORT: Final = 9464

ROOT_LEVEL, LOGGER_LEVELS = "KAFKA_LOG4J_ROOT_LOGLEVEL", "KAFKA_LOG4J_LOGGERS"
INITIAL_CONTROLLERS = "KAFKA_INITIAL_CONTROLLERS"
JOINS_LATER = "none"
NO_SETTINGS: Final = frozenset(
    {
        ROOT_LEVEL,
        LOGGER_LEVELS,
        INITIAL_CONTROLLERS,
        "KAFKA_DEBUG",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_HOME",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_OPTS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_VERSION",
    }
)
_OF_KUBERNETES = re.compile(r"KAFKA_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)")
"""Variables that Kubernetes gives to every pod beside a service with kafka in its name."""
_LISTENER = re.compile(r"([^:/]+)://(.*):(\d+)")
_ANY_HOST = ("", "0.0.0.0", "[::]")


class Container(NamedTuple):
    """What the environment and the file of a container say."""

    settings: dict[str, str]
    """Complete, as texts of a `server.properties`."""
    cluster_id: str | None
    initial_controllers: str | None
    root_level: str
    """A level of Python."""
    logger_levels: dict[str, str]
    """Logger → a level of Kafka."""
    notices: list[str]


def read_container(variables: Mapping[str, str], in_file: Mapping[str, str], hostname: str) -> Container:
    """The container's settings, from its environment and the settings of its file, if it has one."""
    told: list[str] = []
    given = settings_of(variables)
    merged = {**in_file, **given}
    for name in [each for each in merged if each.startswith("zookeeper.")]:
        del merged[name]
        where = "KAFKA_" + name.upper().replace(".", "_") if name in given else name
        told.append(
            f"{where} has no effect: there is no ZooKeeper. A node without KAFKA_CONTROLLER_QUORUM_VOTERS is its own cluster"
        )
    root = variables.get(ROOT_LEVEL, "").strip().upper() or "INFO"
    levels = {}
    for each in filter(None, variables.get(LOGGER_LEVELS, "").split(",")):
        logger, _, level = (part.strip() for part in each.partition("="))
        levels[logger] = _kafkas_level(level)
    return Container(
        settings=complete(merged, hostname),
        cluster_id=variables.get("CLUSTER_ID", "").strip() or None,
        initial_controllers=variables.get(INITIAL_CONTROLLERS, "").strip() or None,
        root_level=_PYTHONS_LEVELS.get(_kafkas_level(root), "INFO"),
        logger_levels=levels,
        notices=told,
    )


def settings_of(variables: Mapping[str, str]) -> dict[str, str]:
    """The settings that `KAFKA_*` and `OTTLA_*` variables name."""
    from ottla.config.broker_keys import BROKER_KEYS

    settings = {}
    for variable, value in sorted(variables.items()):
        if _is_of_kubernetes(variable, value):
            continue
        if variable.startswith("OTTLA_"):
            if (name := variable.lower().replace("_", ".")) in BROKER_KEYS:
                settings[name] = value
        elif variable.startswith("KAFKA_") and variable not in NO_SETTINGS:
            settings[setting_name(variable)] = value
    return settings


def setting_name(variable: str) -> str:
    """`KAFKA_X_Y` → `x.y`; `__` → `_`, `___` → `-`."""
    name = variable.removeprefix("KAFKA_").lower()
    return re.sub("_{1,3}", lambda found: "._-"[len(found[0]) - 1], name)


def _is_of_kubernetes(variable: str, value: str) -> bool:
    is_link = variable.endswith("_PORT") and value.startswith(("tcp://", "udp://"))
    return is_link or _OF_KUBERNETES.fullmatch(variable) is not None


_PYTHONS_LEVELS = {"TRACE": "DEBUG", "DEBUG": "DEBUG", "INFO": "INFO", "WARN": "WARNING", "ERROR": "ERROR", "FATAL": "CRITICAL"}


def _kafkas_level(text: str) -> str:
    level = text.upper()
    return {"ALL": "TRACE", "OFF": "FATAL", "WARNING": "WARN"}.get(level, level if level in _PYTHONS_LEVELS else "INFO")


# -- what is missing


def complete(given: Mapping[str, str], hostname: str) -> dict[str, str]:
    """`given` with what a node needs: roles, listeners, where clients reach it, its quorum, its data.

    A node that nobody has told of other controllers is a cluster of its own, with one replica of each internal topic. The
    listener of its controller is not reachable from outside.
    """
    settings = {name: value.strip() for name, value in given.items()}
    _default(settings, "node.id", settings.pop("broker.id", "") or "1")
    roles = _default(settings, "process.roles", "broker,controller")
    is_broker, is_controller = "broker" in roles, "controller" in roles
    voters = settings.get("controller.quorum.voters", "")
    is_alone = (
        is_broker and is_controller and not _names_others(voters, settings.get("controller.quorum.bootstrap.servers", ""))
    )
    has_quorum = bool(voters or settings.get("controller.quorum.bootstrap.servers"))
    controllers = _default(settings, "controller.listener.names", "CONTROLLER").split(",")[0].strip()
    listeners = _listeners(settings.get("listeners", ""))
    if listeners is None:
        return settings  # malformed: the node's own check says how
    if not settings.get("listeners") and is_broker:
        advertised = _listeners(settings.get("advertised.listeners", ""))
        if advertised is None:
            return settings
        listeners = [(name, "0.0.0.0", port) for name, _, port in advertised if name != controllers]
        listeners = listeners or [("PLAINTEXT", "0.0.0.0", CLIENTS_PORT)]
    if is_controller and all(name != controllers for name, _, _ in listeners):
        port = _own_port(voters, settings["node.id"]) or _free_port({port for _, _, port in listeners})
        listeners.append((controllers, "0.0.0.0" if has_quorum else "localhost", port))
        if (protocols := settings.get("listener.security.protocol.map")) and f"{controllers}:" not in protocols:
            settings["listener.security.protocol.map"] = f"{protocols},{controllers}:PLAINTEXT"
    settings["listeners"] = ",".join(f"{name}://{host}:{port}" for name, host, port in listeners)
    if is_controller and not has_quorum:
        port = next(port for name, _, port in listeners if name == controllers)
        settings["controller.quorum.voters"] = f"{settings['node.id']}@localhost:{port}"
    if is_broker and not settings.get("advertised.listeners"):
        reachable = [
            (name, _advertised(host, hostname, is_alone), port) for name, host, port in listeners if name != controllers
        ]
        settings["advertised.listeners"] = ",".join(f"{name}://{host}:{port}" for name, host, port in reachable)
    if is_alone:
        for name, value in _ALONE.items():
            _default(settings, name, value)
    if not settings.get("log.dir"):
        _default(settings, "log.dirs", DATA)
    _default(settings, "ottla.metrics.port", str(METRICS_PORT))
    for name in ("ottla.metrics.host", "ottla.console.host", "ottla.schema.registry.host"):
        _default(settings, name, "0.0.0.0")
    return settings


_ALONE: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def _default(settings: dict[str, str], name: str, value: str) -> str:
    """Set `name` if it is missing or empty; returns its value."""
    settings[name] = settings.get(name) or value
    return settings[name]


def _listeners(text: str) -> list[tuple[str, str, int]] | None:
    """(name, host, port) of each listener; None if one is malformed."""
    found = [_LISTENER.fullmatch(each.strip()) for each in text.split(",") if each.strip()]
    return None if None in found else [(each[1], each[2], int(each[3])) for each in found if each is not None]


def _names_others(voters: str, servers: str) -> bool:
    return "," in voters or "," in servers


def _own_port(voters: str, node_id: str) -> int | None:
    """The port of this node's controller, as the voters' setting has it."""
    for each in voters.split(","):
        voter, _, address = each.strip().partition("@")
        port = address.rpartition(":")[2]
        if voter == node_id and port.isdecimal():
            return int(port)
    return None


def _free_port(taken: Iterable[int]) -> int:
    return next(port for port in range(CONTROLLER_PORT, 65536) if port not in taken)


def _advertised(host: str, hostname: str, is_alone: bool) -> str:
    """Where clients reach a listener: on this machine if the node is alone, or else by the container's name."""
    if host not in _ANY_HOST:
        return host
    return "localhost" if is_alone else hostname


# -- starting


def from_environment(file: Path | None) -> tuple[Container, Path | None]:
    """The container's settings, and the file that some of them come from."""
    import socket

    if file is None:
        file = next((path for path in map(Path, FILES) if path.is_file()), None)
    try:
        in_file = {} if file is None else parse_properties(file.read_bytes())
    except ValueError as broken:
        raise click.UsageError(f"{file} is not a properties file: {broken}") from None
    except OSError as error:
        raise OttlaError(
            f"{file} cannot be read by this user ({_user()}): {error.strerror}. {_remedy(str(file), 'r')}"
        ) from None
    container = read_container(os.environ, in_file, socket.gethostname())
    return container._replace(settings=resolved(container.settings)), file


def start_container(file: Path | None, overrides: Mapping[str, str], log_dir: Path | None) -> None:
    """Run the node of this container until a signal stops it."""
    if os.getpid() == 1:
        # The kernel ignores a signal to process 1 without a handler; the node has its own from when it starts.
        signal.signal(signal.SIGTERM, _end)
    from ottla.cli.logs import configure_logging
    from ottla.cli.node.companions import services_beside
    from ottla.cli.node.process import logger, run_node
    from ottla.config.broker import BrokerConfig
    from ottla.config.values import InvalidConfig

    container, file = from_environment(file)
    settings = {**container.settings, **overrides}
    configure_logging(level=container.root_level, directory=log_dir)
    for name, level in container.logger_levels.items():
        if (here := logger_here(name)) is not None:
            PythonLoggers().set_level(here, level)
    origin = f"KAFKA_* variables{'' if file is None else f' over {file}'} over defaults"
    for notice in container.notices:
        logger.warning("%s", notice)
    try:
        config = BrokerConfig.from_settings(settings)
    except InvalidConfig as mistake:
        raise click.ClickException(f"the settings of this container ({origin}) are wrong: {mistake}") from mistake
    logger.info("the settings come from %s; `ottla server settings` shows them", origin)
    directories = sorted({*config.log.log_dirs, config.log.metadata_log_dir})
    for directory in directories:
        check_writable(directory)
    with services_beside(settings) as begin:
        _format(config, settings, container)

        def ready(node: Node) -> None:
            begin(node)
            _say_ready(node)

        run_node(settings, ready)


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _say_ready(node: Node) -> None:
    """The lines that testcontainers and others wait for, as Apache's and Confluent's images write them."""
    say(f"Transitioning from RECOVERY to RUNNING: node {node.node_id} is up at {node.bootstrap_servers}")
    say(f"[KafkaServer id={node.node_id}] started")
    say("Kafka Server started")


def _format(config: BrokerConfig, settings: Mapping[str, str], container: Container) -> None:
    """Format the directories that are not: for the cluster of those that are, or for a new one."""
    from ottla.broker.formatting import FormatOptions, format_directories
    from ottla.cli.storage import look_at_directories
    from ottla.env.real.world import real_world

    _, metadata, _ = look_at_directories([config.log.metadata_log_dir])
    existing = None if metadata is None else metadata["cluster.id"]
    first = container.initial_controllers
    is_static = bool(settings.get("controller.quorum.voters"))
    if existing is None and config.is_controller and not is_static and first is None:
        raise OttlaError(
            "KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS does not say which controllers a new cluster begins with: set "
            "KAFKA_CONTROLLER_QUORUM_VOTERS=ID@HOST:PORT,… in its place; or KAFKA_INITIAL_CONTROLLERS="
            "ID@HOST:PORT:DIRECTORY-ID,… with it, the same on all nodes, and `none` on a node that joins later"
        )
    options = FormatOptions(
        container.cluster_id or existing or CLUSTER_ID,
        initial_controllers=None if is_static or first == JOINS_LATER else first,
        no_initial_controllers=not is_static and config.is_controller and first in (None, JOINS_LATER),
        ignore_formatted=True,
    )
    with real_world() as world:
        for line in asyncio.run(format_directories(world, config, options)):
            say(line)


def check_writable(directory: str) -> None:
    """Refuse a directory that this user may not write to, and say which command on the host changes that.

    A disk that fails, or is mounted read-only, is left to the node: it may start without it.
    """
    path = directory
    try:
        while not os.path.exists(path):
            path = os.path.dirname(path) or "."
        if not os.path.isdir(path) or os.access(path, os.W_OK | os.X_OK) or os.statvfs(path).f_flag & os.ST_RDONLY:
            return
        found = os.stat(path)
    except OSError:
        return
    raise OttlaError(
        f"this user ({_user()}) cannot write to {path}, which belongs to user {found.st_uid} and group {found.st_gid} with "
        f"mode {found.st_mode & 0o7777:o}. {_remedy(path, 'rwX')}"
    )


def _user() -> str:
    return f"user {os.getuid()}, group {os.getgid()}"


def _remedy(path: str, mode: str) -> str:
    if os.getgid() == 0:
        command = f"chgrp -R 0 FOLDER && chmod -R g+{mode} FOLDER"
    else:
        command = f"chown -R {os.getuid()}:{os.getgid()} FOLDER"
    return f"On the host: `{command}`, where FOLDER is what is mounted at {path}"
