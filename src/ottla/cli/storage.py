"""`ottla storage`: cluster ids, formatting, a node's log directories, and feature levels of releases. Takes the options of
Kafka's kafka-storage.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.common.options import json_option
from ottla.cli.common.output import print_json, say
from ottla.cli.common.references import resolved
from ottla.cli.common.spelling import Commands
from ottla.config.java_properties import parse_properties
from ottla.config.samples import ADMIN_PROPERTIES, USERS, one_node, three_nodes
from ottla.config.values import InvalidConfig
from ottla.env import InlineWorkers
from ottla.env.real.disk import RealDisk
from ottla.env.real.randomness import RealRandomness
from ottla.errors import OttlaError
from ottla.ids import uuid_text
from ottla.log.directories.meta_properties import VERSION, MetaProperties, read_meta_properties
from ottla.metadata import features

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig


def parse_features(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Parse `name=level` values; the callback of --feature."""
    return tuple(_parse_feature(text) for text in texts)


def _parse_feature(text: str) -> tuple[str, int]:
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals or not name or not level.isascii() or not level.lstrip("-").isdigit() or len(level) > 5:
        raise click.BadParameter(f"{text!r} should be a feature and its level, such as group.version=1")
    return name, int(level)


# In Kafka's order.
PASSWORD_BYTES = 18
_FEATURES = (
    features.KRAFT_VERSION,
    features.TRANSACTION_VERSION,
    features.GROUP_VERSION,
    features.ELIGIBLE_LEADER_REPLICAS_VERSION,
    features.SHARE_VERSION,
    features.STREAMS_VERSION,
)


@click.command("version-mapping")
@click.option("--release-version", "-r", help="A release, such as 4.1 or 4.3-IV0. The default is the newest.")
def version_mapping(release_version: str | None) -> None:
    """Show the feature levels that a new cluster of a release starts with."""
    shown = release_version or features.metadata_version_name(features.METADATA_VERSION_MAX)
    level = features.metadata_version_of(shown)
    if level is None:
        names = ", ".join(version.name for version in features.METADATA_VERSIONS.values())
        raise click.ClickException(f"there is no release version {shown!r}: use one of {names}")
    levels = features.default_levels(level)
    say(f"{features.METADATA_VERSION}={level} ({shown})")
    for name in _FEATURES:
        say(f"{name}={levels.get(name, 0)}")


@click.command("feature-dependencies")
@click.option(
    "--feature",
    "-f",
    "wanted",
    multiple=True,
    required=True,
    metavar="NAME=LEVEL",
    callback=parse_features,
    help="A feature and a level of it. Repeatable.",
)
def feature_dependencies(wanted: tuple[tuple[str, int], ...]) -> None:
    """Show which other features a feature level requires."""
    for name, level in wanted:
        _check(name, level)
        shown = f"{name}={level}"
        if name == features.METADATA_VERSION:
            shown += f" ({features.metadata_version_name(level)})"
        needs = features.DEPENDENCIES.get((name, level), {})
        if not needs:
            say(f"{shown} has no dependencies.")
            continue
        say(f"{shown} requires:")
        for needed, needed_level in needs.items():
            also = f" ({features.metadata_version_name(needed_level)})" if needed == features.METADATA_VERSION else ""
            say(f"    {needed}={needed_level}{also}")


def _check(name: str, level: int) -> None:
    if name in features.UNSERVED_FEATURES:
        low, high = 0, features.UNSERVED_FEATURES[name]
    elif name in features.SUPPORTED_FEATURES:
        low, high = features.SUPPORTED_FEATURES[name]
    else:
        raise click.ClickException(f"there is no feature {name}: the features are {', '.join(sorted(_FEATURES))}")
    if not low <= level <= high:
        raise click.ClickException(f"{name} has no level {level}: it can be {low} to {high}")


EPILOG = """\b
Examples:
  ottla storage sample                         a server.properties to begin with; --nodes 3 for a cluster
  ottla storage random-uuid
  ottla storage format --standalone -t $(ottla storage random-uuid) -c server.properties
  ottla storage format --standalone -t ID -c server.properties --feature group.version=0
  ottla storage info -c server.properties
"""

CONFIG = click.option(
    "--config",
    "-c",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The node's server.properties.",
)


@click.group(cls=Commands, epilog=EPILOG)
def storage() -> None:
    """Format the log directories of a node, and show their state."""


storage.add_command(version_mapping)
storage.add_command(feature_dependencies)


@storage.command("random-uuid")
def random_uuid() -> None:
    """Print a new id, for a cluster or a directory."""
    say(uuid_text(RealRandomness().new_uuid()))


@storage.command("format")
@CONFIG
@click.option("--cluster-id", "-t", required=True, help="The id of the cluster that the node belongs to.")
@click.option("--standalone", "-s", is_flag=True, help="The node is the only voter of its quorum; others may be added later.")
@click.option("--no-initial-controllers", "-N", is_flag=True, help="The node joins a quorum that exists already.")
@click.option(
    "--initial-controllers",
    "-I",
    metavar="ID@HOST:PORT:DIRECTORY-ID,…",
    help="The first controllers of the quorum, the same for every node of it.",
)
@click.option(
    "--feature",
    "-f",
    "features",
    multiple=True,
    metavar="NAME=LEVEL",
    callback=parse_features,
    help="The level of a feature. Repeatable.",
)
@click.option("--release-version", "-r", help="Start with the feature levels of this release, such as 4.1 or 4.3-IV0.")
@click.option(
    "--add-scram",
    "-S",
    "scram",
    multiple=True,
    metavar="SCRAM-SHA-256=[name=…,password=…]",
    help="A SCRAM credential that the cluster starts with; also [name=…,iterations=…,salt=…,saltedpassword=…]. @FILE reads "
    "them from the lines of a file: no process list shows them. Repeatable.",
)
@click.option("--ignore-formatted", "-g", is_flag=True, help="Skip directories that are already formatted.")
def format_command(
    config: Path,
    cluster_id: str,
    standalone: bool,
    no_initial_controllers: bool,
    initial_controllers: str | None,
    features: tuple[tuple[str, int], ...],
    release_version: str | None,
    scram: tuple[str, ...],
    ignore_formatted: bool,
) -> None:
    """Format the log directories of a node for its first start."""
    from ottla.broker.formatting import FormatOptions, format_directories
    from ottla.env.real.world import real_world

    options = FormatOptions(
        cluster_id=cluster_id,
        standalone=standalone,
        initial_controllers=initial_controllers,
        no_initial_controllers=no_initial_controllers,
        release_version=release_version,
        features=dict(features),
        ignore_formatted=ignore_formatted,
        scram=_from_files(scram),
    )
    settings = read_config(config)
    with real_world() as world:
        for line in asyncio.run(format_directories(world, settings, options)):
            say(line)


@storage.command()
@click.option(
    "--nodes", type=click.IntRange(1, 3), default=1, show_default=True, help="1: one node. 3: three files of a cluster."
)
@click.option("--host", default="localhost", show_default=True, help="Where the nodes listen.")
@click.option(
    "--port", type=click.IntRange(1, 55_000), default=9092, show_default=True, help="The port of the first node, for clients."
)
@click.option("--secure", is_flag=True, help="With TLS, users and access control, and the files of a user `admin`.")
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
def sample(folder: Path, nodes: int, host: str, port: int, secure: bool) -> None:
    """Write a commented server.properties to begin with to FOLDER, or three for a cluster; files that exist are kept.

    The first lines of each file say how to format the log directory and start the node.
    """
    from ottla.env.real.certificates import write_secret

    if nodes == 2:
        raise click.UsageError("--nodes 2: two controllers are no better than one, since both must be up. Choose 1 or 3")
    password = secrets.token_urlsafe(PASSWORD_BYTES) if secure else None
    files = one_node(host, port, password) if nodes == 1 else three_nodes(host, port, password)
    if existing := [name for name in files if (folder / name).exists()]:
        raise click.ClickException(f"{folder / existing[0]} exists already: name another folder, or move it away")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        if secure:
            write_secret(folder / name, text)
        else:
            (folder / name).write_text(text)
        what = _ABOUT.get(name, "its first lines say how to start the node")
        say(f"Wrote {folder / name}: {what}.")


_ABOUT = {
    ADMIN_PROPERTIES: "for clients and commands of the user admin (--command-config). It has the password: keep it secret",
    USERS: "the same password, for the format of the nodes. Remove it when that is done",
}


def _from_files(arguments: Iterable[str]) -> list[str]:
    """The arguments of --add-scram, with those that a @FILE holds."""
    found: list[str] = []
    for argument in arguments:
        if not argument.startswith("@"):
            found.append(argument)
            continue
        try:
            lines = Path(argument[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"--add-scram {argument}: the file cannot be read: {error}") from None
        found += (line.strip() for line in lines if line.strip() and not line.startswith("#"))
    return found


def read_config(path: Path) -> BrokerConfig:
    """The settings of a server.properties. An invalid one raises an error that names the file."""
    from ottla.config.broker import BrokerConfig

    try:
        return BrokerConfig.from_settings(resolved(parse_properties(path.read_bytes())))
    except (InvalidConfig, ValueError) as mistake:
        raise click.ClickException(f"{path}: {mistake}") from mistake


@storage.command()
@CONFIG
@json_option
def info(config: Path, as_json: bool) -> int:
    """Show the log directories, and the cluster and node they belong to. The exit code is 1 if anything is wrong with them."""
    settings = read_config(config)
    found, metadata, problems = look_at_directories(sorted({*settings.log.log_dirs, settings.log.metadata_log_dir}))
    if as_json:
        print_json({"directories": found, "metadata": metadata, "problems": problems})
        return 1 if problems else 0
    if found:
        _section("Found log directory:" if len(found) == 1 else "Found log directories:", found)
    if metadata is not None:
        say("Found metadata: {" + ", ".join(f"{name}={metadata[name]}" for name in sorted(metadata)) + "}")
        say()
    if problems:
        _section("Found problem:" if len(problems) == 1 else "Found problems:", problems)
    return 1 if problems else 0


def _section(title: str, lines: Iterable[str]) -> None:
    for line in (title, *(f"  {line}" for line in lines), ""):
        say(line)


def look_at_directories(directories: Iterable[str]) -> tuple[list[str], Mapping[str, str] | None, list[str]]:
    """The directories that exist, the meta.properties of the first, and the problems found."""
    disk = RealDisk(InlineWorkers())
    found: list[str] = []
    problems: list[str] = []
    first: MetaProperties | None = None
    for directory in directories:
        if not disk.is_directory(directory):
            problems.append(f"{directory} is not a directory" if disk.exists(directory) else f"{directory} does not exist")
            continue
        found.append(directory)
        try:
            meta = read_meta_properties(disk, directory)
        except OttlaError as damage:
            problems.append(str(damage))
            continue
        if meta is None:
            problems.append(f"{directory} is not formatted.")
        elif first is None:
            first = meta
        elif meta.cluster_id != first.cluster_id:
            problems.append(f"{directory} belongs to cluster {meta.cluster_id}, not to {first.cluster_id} as the first does.")
        elif meta.node_id != first.node_id:
            problems.append(f"{directory} belongs to node {meta.node_id}, not to {first.node_id} as the first does.")
    if first is None:
        return found, None, problems
    metadata = {"cluster.id": first.cluster_id, "node.id": str(first.node_id), "version": str(VERSION)}
    if first.directory_id is not None:
        metadata["directory.id"] = uuid_text(first.directory_id)
    return found, metadata, problems
