"""Formats log directories: writes the files that a node needs to start, as Kafka's storage tool does.

    meta.properties                                       cluster id, node id, directory id; written last: it marks "formatted"
    bootstrap.checkpoint                                  a new cluster's first feature levels and SCRAM credentials
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint
                                                          in metadata.log.dir, for a dynamic quorum: its first voters

All checks come before the first write. A format that is interrupted leaves no `meta.properties` and can be done again.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.runtime.activation import BOOTSTRAP_CHECKPOINT
from ottla.broker.scram_arguments import parse_scram
from ottla.config.broker import BrokerConfig
from ottla.env import OpenMode
from ottla.errors import OttlaError, remedy_for
from ottla.ids import Uuid, uuid_text
from ottla.log.directories.meta_properties import MetaProperties, check_same_node, read_meta_properties, write_meta_properties
from ottla.log.directories.startup import FOREIGN_FOLDERS
from ottla.log.names import CLUSTER_METADATA_TOPIC, META_PROPERTIES
from ottla.metadata import features
from ottla.raft.snapshots import FIRST_SNAPSHOT, build_snapshot, snapshot_name
from ottla.raft.voters import ReplicaKey, Voter, VoterSet, parse_initial_controllers
from ottla.wire.base import Message
from ottla.wire.log_records import encode_metadata_record
from ottla.wire.messages.metadata_records import FeatureLevelRecord

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig
    from ottla.env import Disk, File, World


_OF_A_FORMAT_CUT_SHORT = (BOOTSTRAP_CHECKPOINT, META_PROPERTIES, f"{CLUSTER_METADATA_TOPIC}-0", ".lock")
"""Prefixes of the names that an interrupted format, or a start before it, may have left."""


class FormatRefused(OttlaError):
    """The format was refused; nothing was written."""


class FormatOptions(NamedTuple):
    """The options of a format, besides the node's settings."""

    cluster_id: str
    standalone: bool = False
    """The node is the first and only voter of a dynamic quorum."""
    initial_controllers: str | None = None
    """The first voters of a dynamic quorum, `id@host:port:directory-id,…`, the same for all of its nodes."""
    no_initial_controllers: bool = False
    """The node joins a dynamic quorum later."""
    release_version: str | None = None
    features: Mapping[str, int] = MappingProxyType({})
    ignore_formatted: bool = False
    scram: Sequence[str] = ()
    """SCRAM credentials that the cluster begins with, in Kafka's notation: see `scram_arguments`."""


async def format_directories(world: World, config: BrokerConfig, options: FormatOptions) -> list[str]:
    """Format the directories of a node that are not formatted yet; returns what was done, one line each.

    Raises `FormatRefused` for options that do not fit, `WrongDirectory` if a directory belongs to another node or cluster.
    """
    _check_cluster_id(options.cluster_id)
    voters = _first_voters(world, config, options)
    levels = _levels(options, _is_dynamic(config, options))
    records: list[Message] = [*bootstrap_records(levels), *_logins(world, options, levels[features.METADATA_VERSION])]
    metadata_directory = config.log.metadata_log_dir
    directories = sorted({*config.log.log_dirs, metadata_directory})
    unformatted = _unformatted(world.disk, directories, config, options)
    if not unformatted:
        return ["All of the log directories are already formatted."]
    lines: list[str] = []
    for directory in unformatted:
        is_metadata = directory == metadata_directory
        try:
            await _format(world, config, options, directory, records, levels, voters if is_metadata else None)
        except OSError as error:
            raise _cannot_be_made(world.disk, directory, error) from error
        name = features.metadata_version_name(levels[features.METADATA_VERSION])
        kind = _kind(voters, config.node_id) if is_metadata else "data"
        lines.append(f"Formatted {kind} directory {directory} with metadata.version {name}.")
    return lines


async def format_if_new(
    world: World,
    settings: Mapping[str, str],
    levels: Mapping[str, int] = MappingProxyType({}),
    scram: Sequence[str] = (),
) -> list[str]:
    """Format the unformatted directories of a node that is its own cluster; returns what was done, one line each.

    If none is formatted, they become a new cluster. `settings` are the texts of a `server.properties`; `levels` are the feature
    levels that differ from the newest, `scram` the users of a new cluster (`scram_arguments`). Raises `FormatRefused` if the
    metadata log's directory is not formatted and others are: with a new metadata log, their partitions would belong to no
    topic. Raises it too if a folder holds other files: the operator may have named the wrong one.
    """
    config = BrokerConfig.from_settings(settings)
    disk, metadata_directory = world.disk, config.log.metadata_log_dir
    metas = {path: _read_meta(disk, path) for path in sorted({*config.log.log_dirs, metadata_directory})}
    formatted = {path: meta for path, meta in metas.items() if meta is not None}
    if len(formatted) == len(metas):
        return []
    for path in (path for path in metas if path not in formatted):
        _check_empty(disk, path)
    if not formatted:
        cluster_id = uuid_text(world.randomness.new_uuid())
    elif (meta := formatted.get(metadata_directory)) is not None:
        cluster_id = meta.cluster_id
    else:
        raise FormatRefused(
            f"log directory {next(iter(formatted))} is formatted, and {metadata_directory}, where the metadata log belongs, is "
            "not: correct log.dirs or metadata.log.dir"
        )
    is_standalone = not config.controller_quorum_voters
    options = FormatOptions(cluster_id, standalone=is_standalone, features=levels, ignore_formatted=True, scram=scram)
    return await format_directories(world, config, options)


def _read_meta(disk: Disk, directory: str) -> MetaProperties | None:
    try:
        return read_meta_properties(disk, directory)
    except OSError as error:
        raise _cannot_be_made(disk, directory, error) from error


def _cannot_be_made(disk: Disk, directory: str, error: OSError) -> FormatRefused:
    """The refusal of a directory that the operating system refuses: why, and what to do."""
    where, remedy, path = "(log.dirs; --data of `ottla up`)", remedy_for(error), directory
    reason = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    while isinstance(error, (NotADirectoryError, FileExistsError)) and path not in ("", "/"):
        if disk.exists(path) and not disk.is_directory(path):
            reason = f"{path} is a file, not a folder"
        path = posixpath.dirname(path)
    advice = "Name another folder" if remedy is None else f"{remedy}, or name another folder"
    return FormatRefused(f"log directory {directory} cannot be made: {reason}. {advice} {where}")


def _check_empty(disk: Disk, directory: str) -> None:
    for name in disk.list_directory(directory) if disk.is_directory(directory) else ():
        if name not in FOREIGN_FOLDERS and not name.startswith(_OF_A_FORMAT_CUT_SHORT):
            raise FormatRefused(
                f"{directory} holds {name} and is no log directory: name an empty folder, or one that does not exist yet"
            )


def _check_cluster_id(cluster_id: str) -> None:
    if not cluster_id or not cluster_id.isprintable() or any(character.isspace() for character in cluster_id):
        raise FormatRefused(
            f"{cluster_id!r} cannot be a cluster id: it must be one word. `ottla storage random-uuid` makes a good one"
        )


def _unformatted(disk: Disk, directories: Iterable[str], config: BrokerConfig, options: FormatOptions) -> list[str]:
    metas: dict[str, MetaProperties] = {}
    unformatted = []
    for directory in directories:
        meta = _read_meta(disk, directory)
        if meta is None:
            unformatted.append(directory)
        elif not options.ignore_formatted:
            raise FormatRefused(
                f"log directory {directory} is already formatted, for node {meta.node_id} of cluster {meta.cluster_id}: add "
                "--ignore-formatted to format the others only"
            )
        else:
            metas[directory] = meta
    check_same_node(metas, config.node_id, options.cluster_id)
    return unformatted


# -- features


def _levels(options: FormatOptions, is_dynamic: bool) -> dict[str, int]:
    """The first feature levels, including kraft.version."""
    metadata_version = _metadata_version(options)
    levels = features.default_levels(metadata_version)
    levels[features.KRAFT_VERSION] = 1 if is_dynamic else 0
    for name, level in options.features.items():
        _check_level(name, level)
        if name == features.KRAFT_VERSION and level != levels[name]:
            quorum = "a dynamic quorum has kraft.version 1" if is_dynamic else "a static quorum has kraft.version 0"
            raise FormatRefused(f"kraft.version={level} does not fit: {quorum}. Leave it out, it follows from the quorum")
        levels[name] = level
    for (name, level), needs in features.DEPENDENCIES.items():
        for needed, needed_level in needs.items():
            if levels.get(name, 0) >= level and levels.get(needed, 0) < needed_level:
                raise FormatRefused(f"{name}={level} needs {needed}={needed_level} or more, and it is {levels.get(needed, 0)}")
    return levels


def _metadata_version(options: FormatOptions) -> int:
    if options.release_version is None:
        return options.features.get(features.METADATA_VERSION, features.METADATA_VERSION_MAX)
    if features.METADATA_VERSION in options.features:
        raise FormatRefused("--release-version and --feature metadata.version say the same thing: use one of them")
    level = features.metadata_version_of(options.release_version)
    if level is None:
        names = ", ".join(version.name for version in features.METADATA_VERSIONS.values())
        raise FormatRefused(f"there is no release version {options.release_version!r}: use one of {names}")
    return level


def _check_level(name: str, level: int) -> None:
    if name in features.UNSERVED_FEATURES:
        if level != 0:
            raise FormatRefused(f"{name}={level} cannot be set: Ottla does not serve it yet, so its level stays at 0")
        return
    if name not in features.SUPPORTED_FEATURES:
        known = ", ".join(sorted([*features.SUPPORTED_FEATURES, *features.UNSERVED_FEATURES]))
        raise FormatRefused(f"there is no feature {name}: the features are {known}")
    low, high = features.SUPPORTED_FEATURES[name]
    if not low <= level <= high:
        raise FormatRefused(f"{name} has no level {level}: it can be {low} to {high}")


def bootstrap_records(levels: Mapping[str, int]) -> list[FeatureLevelRecord]:
    """The first records of a cluster: metadata.version, then the others by name. The quorum itself stores kraft.version."""
    names = sorted(set(levels) - {features.METADATA_VERSION, features.KRAFT_VERSION})
    return [
        FeatureLevelRecord(name=name, feature_level=levels[name])
        for name in [features.METADATA_VERSION, *names]
        if levels[name] > 0
    ]


def _logins(world: World, options: FormatOptions, metadata_version: int) -> list[Message]:
    if not options.scram:
        return []
    if metadata_version < features.SCRAM_FROM:
        needed = features.metadata_version_name(features.SCRAM_FROM)
        raise FormatRefused(f"--add-scram needs metadata.version {needed} or more: leave it out, or take a newer version")

    return [parse_scram(each, lambda: world.randomness.new_uuid() + world.randomness.new_uuid()) for each in options.scram]


# -- voters


def _is_dynamic(config: BrokerConfig, options: FormatOptions) -> bool:
    if options.standalone or options.initial_controllers or options.no_initial_controllers:
        return True
    return not config.controller_quorum_voters


def _first_voters(world: World, config: BrokerConfig, options: FormatOptions) -> VoterSet | None:
    """The voters to write; None if the quorum is static or this node joins it later."""
    if sum([options.standalone, options.initial_controllers is not None, options.no_initial_controllers]) > 1:
        raise FormatRefused("--standalone, --initial-controllers and --no-initial-controllers exclude each other: use one")
    is_asked = options.standalone or options.initial_controllers is not None
    if config.controller_quorum_voters:
        if is_asked:
            raise FormatRefused(
                "controller.quorum.voters makes the quorum a static one, --standalone and --initial-controllers a dynamic one: "
                "remove the setting (and set controller.quorum.bootstrap.servers), or leave the option out"
            )
        return None
    if config.is_controller and not is_asked and not options.no_initial_controllers:
        raise FormatRefused(
            "this controller's quorum is not known, as controller.quorum.voters is not set: add --standalone, "
            "--initial-controllers or --no-initial-controllers"
        )
    listener = config.controller_listener_names[0]
    if options.initial_controllers is not None:
        return parse_initial_controllers(options.initial_controllers, listener)
    if not options.standalone:
        return None
    if not config.is_controller:
        raise FormatRefused("--standalone is for controllers, and process.roles does not make this node one")
    advertised = config.advertised_controller_listeners[0]
    endpoints = {advertised.name: (advertised.host or "localhost", advertised.port)}
    return VoterSet([Voter(ReplicaKey(config.node_id, world.randomness.new_uuid()), endpoints)])


def _kind(voters: VoterSet | None, node_id: int) -> str:
    if voters is None:
        return "metadata"
    return "dynamic metadata voter" if voters.get(node_id) is not None else "dynamic metadata"


# -- writing


async def _format(
    world: World,
    config: BrokerConfig,
    options: FormatOptions,
    directory: str,
    records: Sequence[Message],
    levels: Mapping[str, int],
    voters: VoterSet | None,
) -> None:
    disk, now_ms = world.disk, world.clock.now_ms()
    values = [encode_metadata_record(record, 0) for record in records]
    files = {f"{directory}/{BOOTSTRAP_CHECKPOINT}": build_snapshot(FIRST_SNAPSHOT, 0, 0, None, values, now_ms)}
    directory_id: Uuid | None = None
    folders = [posixpath.dirname(path) or "." for path in _missing(disk, directory)]
    disk.make_directory(directory)
    folders.append(directory)
    if voters is not None:
        own = voters.get(config.node_id)
        directory_id = own.key.directory_id if own is not None else None
        folders.append(f"{directory}/{CLUSTER_METADATA_TOPIC}-0")
        disk.make_directory(folders[-1])
        path = f"{folders[-1]}/{snapshot_name(FIRST_SNAPSHOT)}"
        files[path] = build_snapshot(FIRST_SNAPSHOT, now_ms, levels[features.KRAFT_VERSION], voters, [], now_ms)
    await _write_all(disk, files, folders)
    meta = MetaProperties(options.cluster_id, config.node_id, directory_id or world.randomness.new_uuid())
    await write_meta_properties(disk, directory, meta, now_ms)


def _missing(disk: Disk, directory: str) -> list[str]:
    """`directory` and its parents, as far as they do not exist."""
    missing = []
    while directory not in ("", "/") and not disk.exists(directory):
        missing.append(directory)
        directory = posixpath.dirname(directory)
    return missing


async def _write_all(disk: Disk, files: Mapping[str, bytes], folders: Sequence[str]) -> None:
    """Write files durably, with their directory entries. They are not read before `meta.properties` exists."""
    opened: list[File] = []
    try:
        for path, data in files.items():
            file = disk.open(path, OpenMode.CREATE)
            opened.append(file)
            file.truncate(0)
            file.append(data)
        await asyncio.gather(*(file.sync() for file in opened), *map(disk.sync_directory, folders))
    finally:
        for file in opened:
            file.close()
