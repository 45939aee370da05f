"""`meta.properties`: the cluster and node that a log directory belongs to. Written by formatting, checked at every start.

A Java properties file with `version=1`, `cluster.id`, `node.id` and `directory.id`. The controller knows a directory by its id,
so that replicas can be placed in it and a swapped disk is noticed. Directories formatted before Kafka 3.7 have none and get one
at their first start.

A start with the wrong directory would mix two clusters' records. So every error here names the directory, the mistake, and what
to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.java_properties import format_properties, parse_properties
from ottla.env import SMALL_FILE_BYTES_MAX, Disk
from ottla.errors import CorruptFile, OttlaError
from ottla.ids import InvalidUuid, Uuid, uuid_parse, uuid_text
from ottla.log.names import META_PROPERTIES

VERSION = 1
RESERVED_IDS = 100
"""Directory ids below this number are reserved (unassigned, lost, migrating): no directory may have one."""

_REMEDY = "Restore the file from a backup, or format the directory again if its records are not needed"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class WrongDirectory(OttlaError):
    """A log directory belongs to another node or cluster, or conflicts with another directory of this node."""


class MetaProperties(NamedTuple):
    """The content of the file."""

    cluster_id: str
    node_id: int
    directory_id: Uuid | None = None


def format_meta_properties(meta: MetaProperties, now_ms: int) -> bytes:
    """The bytes of the file, with the time of writing in a comment, as Java writes it."""
    from datetime import UTC, datetime, timedelta  # late: only formatting needs it

    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=now_ms)
    day, month = _DAYS[moment.weekday()], _MONTHS[moment.month - 1]
    properties = {"node.id": str(meta.node_id)}
    if meta.directory_id is not None:
        properties["directory.id"] = uuid_text(meta.directory_id)
    properties |= {"version": str(VERSION), "cluster.id": meta.cluster_id}
    return format_properties(properties, ["", f"{day} {month} {moment:%d %H:%M:%S} UTC {moment.year}"])


def parse_meta_properties(path: str, data: bytes) -> MetaProperties:
    """Parse the file; `CorruptFile` if a required property is missing or wrong."""
    try:
        properties = parse_properties(data)
    except ValueError as broken:
        raise CorruptFile(path, 0, str(broken), _REMEDY) from None
    version = properties.get("version", "").strip()
    if version != str(VERSION):
        what = f"version {version!r} is unknown; Kafka 4 directories have version {VERSION}"
        raise CorruptFile(path, 0, what, "Directories of a ZooKeeper-based Kafka are migrated with Apache Kafka 3.9 first")
    node_id = properties.get("node.id", "").strip()
    cluster_id = properties.get("cluster.id", "").strip()
    if not node_id.isascii() or not node_id.isdigit() or int(node_id[:11]) >= 1 << 31:
        raise CorruptFile(path, 0, f"node.id should be a number, not {node_id!r}", _REMEDY)
    if not cluster_id:
        raise CorruptFile(path, 0, "cluster.id is missing", _REMEDY)
    return MetaProperties(cluster_id, int(node_id), _parse_directory_id(path, properties.get("directory.id")))


def _parse_directory_id(path: str, text: str | None) -> Uuid | None:
    if text is None:
        return None
    try:
        directory_id = uuid_parse(text.strip())
    except InvalidUuid as invalid:
        raise CorruptFile(path, 0, f"directory.id: {invalid}", _REMEDY) from None
    if is_reserved(directory_id):
        raise CorruptFile(path, 0, f"directory.id {text} is a reserved id, which no directory may have", _REMEDY)
    return directory_id


def is_reserved(directory_id: Uuid) -> bool:
    """Whether an id is reserved."""
    return int.from_bytes(directory_id, "big") < RESERVED_IDS


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    """Read the directory's file; None if there is none. `CorruptFile` if it is damaged."""
    path = f"{directory}/{META_PROPERTIES}"
    try:
        data = disk.read_file(path, SMALL_FILE_BYTES_MAX)
    except FileNotFoundError:
        return None
    return parse_meta_properties(path, data)


async def write_meta_properties(disk: Disk, directory: str, meta: MetaProperties, now_ms: int) -> None:
    """Write the file, durably."""
    await disk.replace_file(f"{directory}/{META_PROPERTIES}", format_meta_properties(meta, now_ms))


def check_same_node(metas: Mapping[str, MetaProperties], node_id: int, cluster_id: str | None = None) -> None:
    """`WrongDirectory` unless all directories belong to node `node_id` of one cluster, and no two have the same id.

    `cluster_id` is the expected cluster; None: that of the first directory.
    """
    owners: dict[Uuid, str] = {}
    first = next(iter(metas), "")
    for directory, meta in metas.items():
        if meta.node_id != node_id:
            raise WrongDirectory(
                f"log directory {directory} belongs to node {meta.node_id}, but this is node {node_id}: correct node.id or "
                "log.dirs"
            )
        expected = cluster_id if cluster_id is not None else metas[first].cluster_id
        if meta.cluster_id != expected:
            other = "this cluster is" if cluster_id is not None else f"{first} belongs to"
            raise WrongDirectory(
                f"log directory {directory} belongs to cluster {meta.cluster_id}, but {other} {expected}: correct log.dirs, or "
                "format the directory if its records may go"
            )
        if meta.directory_id is not None:
            if meta.directory_id in owners:
                raise WrongDirectory(
                    f"log directories {owners[meta.directory_id]} and {directory} both have the id "
                    f"{uuid_text(meta.directory_id)}: one is a copy of the other, remove it from log.dirs"
                )
            owners[meta.directory_id] = directory
