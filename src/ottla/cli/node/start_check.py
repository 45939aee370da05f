"""Finds out whether a start would be refused, before it creates or changes anything.

A node locks its directories, opens its metadata log and binds its ports one after the other. What was created before a refusal
would stay: folders, lock files, empty segments. So a command looks first: at settings, directories and ports, in this order.
The node itself checks everything again, under its locks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.broker.settings import BrokerSettings
from ottla.log.directories.meta_properties import MetaProperties, WrongDirectory, check_same_node, read_meta_properties
from ottla.log.directories.startup import check_folders, require_meta

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig
    from ottla.env import World
    from ottla.env.net import Listener, Stream


async def check_start(world: World, settings: Mapping[str, str], hostname: str, *, formats_new: bool = False) -> None:
    """Raise what a start with `settings` would raise. With `formats_new`, directories need not be formatted yet."""
    config = BrokerSettings(settings, hostname=hostname).current
    check_directories(world, config, formats_new)
    await check_ports(world, addresses(config))


def check_directories(world: World, config: BrokerConfig, formats_new: bool = False) -> None:
    """Refuse directories of another node or cluster, in use by another process, or not formatted."""
    disk, metadata_path = world.disk, config.log.metadata_log_dir
    metas: dict[str, MetaProperties] = {}
    for path in sorted({*config.log.log_dirs, metadata_path}):
        try:
            if (file := _file_in(path)) is not None and not formats_new:
                raise WrongDirectory(f"log directory {path} cannot be: {file} is a file, not a folder. Correct log.dirs")
            meta = read_meta_properties(disk, path)
            if meta is None:
                if not formats_new and _can_be_made(path):
                    require_meta(disk, path)
                continue  # a directory that cannot even be made is a failed disk: the node may start without it
            if disk.exists(f"{path}/.lock"):
                disk.lock_directory(path).release()
            check_folders(disk, path, metadata_path)
        except OSError:
            continue  # the same
        metas[path] = meta
    check_same_node(metas, config.node_id)


def _file_in(path: str) -> str | None:
    """The part of `path` that is a file and should be a folder."""
    existing = _existing(path)
    return existing if os.path.isfile(existing) else None


def _can_be_made(path: str) -> bool:
    """Whether the folder exists, or this process may make it."""
    existing = _existing(path)
    return os.path.isdir(existing) and os.access(existing, os.W_OK | os.X_OK)


def _existing(path: str) -> str:
    while not os.path.exists(path):
        path = os.path.dirname(path) or "."
    return path


def addresses(config: BrokerConfig) -> list[tuple[str, int]]:
    """Where a node listens."""
    found = [(each.host, each.port) for each in config.listeners]
    if config.metrics_address is not None:
        found.append(config.metrics_address)
    return found


async def check_ports(world: World, places: Sequence[tuple[str, int]]) -> None:
    """Bind all of them at once and let them go; `AddressRefused` if one is taken."""
    bound: list[Listener] = []
    try:
        for host, port in places:
            if port:
                bound.append(await world.network.listen(host, port, _nobody))
                bound[-1].pause()
    finally:
        for each in bound:
            each.close()


def _nobody(stream: Stream) -> None:
    """Accepts none: closed at once."""
