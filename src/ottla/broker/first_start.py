"""Directories that a node finds new are formatted for it: for `ottla up` and embedded brokers, where nobody wants to do it.

A folder that holds something else is not taken: the person may have named the wrong one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.formatting import FormatOptions, FormatRefused, format_directories
from ottla.broker.hosts.activation import BOOTSTRAP_CHECKPOINT
from ottla.ids import uuid_text
from ottla.log.names import CLUSTER_METADATA_TOPIC, META_PROPERTIES

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig
    from ottla.env import World

_OF_A_FORMAT_CUT_SHORT = (BOOTSTRAP_CHECKPOINT, META_PROPERTIES, f"{CLUSTER_METADATA_TOPIC}-0", ".lock")


async def format_if_new(world: World, config: BrokerConfig) -> None:
    """Format the node's directories as a cluster of its own, unless one of them is formatted already."""
    directories = dict.fromkeys((*config.log.log_dirs, config.log.metadata_log_dir))
    if any(world.disk.exists(f"{directory}/{META_PROPERTIES}") for directory in directories):
        return
    for directory in directories:
        if world.disk.is_directory(directory):
            _check_empty(world, directory)
    cluster_id = uuid_text(world.randomness.new_uuid())
    await format_directories(world, config, FormatOptions(cluster_id, standalone=True))


def _check_empty(world: World, directory: str) -> None:
    for name in world.disk.list_directory(directory):
        if not name.startswith(_OF_A_FORMAT_CUT_SHORT):
            raise FormatRefused(
                f"{directory} holds {name} and is no log directory: name an empty folder, or one that does not exist yet"
            )
