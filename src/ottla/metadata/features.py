"""Features: the levels that this release supports, the names of metadata versions, and the record versions of each level.

Owns the table of metadata.version and the levels of the other features. Pure data and look-ups: a cluster's finalised levels
are in its image, and `controller/features.py` decides on changes.

share.version and streams.version are known but not supported: Ottla does not serve those groups. A directory in which Apache
Kafka has finalised them still opens; they can only be lowered to 0.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.errors import BrokenInvariant
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"

METADATA_VERSION_MIN: Final = 7
METADATA_VERSION_MAX: Final = 30

SUPPORTED_FEATURES: Final[dict[str, tuple[int, int]]] = {
    METADATA_VERSION: (METADATA_VERSION_MIN, METADATA_VERSION_MAX),
    KRAFT_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    GROUP_VERSION: (0, 1),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
}
"""Feature → the lowest and the highest level that this release supports."""

UNSERVED_FEATURES: Final[dict[str, int]] = {SHARE_VERSION: 1, STREAMS_VERSION: 1}
"""Feature of Kafka 4.3 that is not served → the highest level that is tolerated in a directory."""


class MetadataVersion(NamedTuple):
    """One level of metadata.version. `changes_records`: earlier levels cannot represent all records written under it."""

    level: int
    name: str
    changes_records: bool

    @property
    def release(self) -> str:
        """The release that introduced this level, such as 4.3."""
        return self.name.partition("-")[0]


METADATA_VERSIONS: Final[dict[int, MetadataVersion]] = {
    level: MetadataVersion(level, name, changes_records)
    for level, (name, changes_records) in enumerate(
        [
            ("3.3-IV3", True),
            ("3.4-IV0", True),
            ("3.5-IV0", False),
            ("3.5-IV1", False),
            ("3.5-IV2", True),
            ("3.6-IV0", False),
            ("3.6-IV1", True),
            ("3.6-IV2", True),
            ("3.7-IV0", True),
            ("3.7-IV1", False),
            ("3.7-IV2", True),
            ("3.7-IV3", False),
            ("3.7-IV4", False),
            ("3.8-IV0", False),
            ("3.9-IV0", False),
            ("4.0-IV0", False),
            ("4.0-IV1", True),
            ("4.0-IV2", False),
            ("4.0-IV3", False),
            ("4.1-IV0", False),
            ("4.1-IV1", False),
            ("4.2-IV0", False),
            ("4.2-IV1", False),
            ("4.3-IV0", True),
        ],
        start=METADATA_VERSION_MIN,
    )
}

# The first metadata.version whose records can represent each of these.
_MIGRATION_FROM: Final = 8
SCRAM_FROM: Final = 11
ISR_SHRINK_KEEPS_EPOCH_FROM: Final = 12
TRANSACTIONS_FROM: Final = 13
DELEGATION_TOKENS_FROM: Final = 14
CONTROLLER_REGISTRATION_FROM: Final = 15
DIRECTORIES_FROM: Final = 17
ELR_FROM: Final = 23
CORDONED_DIRECTORIES_FROM: Final = 30

_DEFAULT_LEVELS: Final[tuple[tuple[str, int, int], ...]] = (
    (KRAFT_VERSION, 1, 21),
    (TRANSACTION_VERSION, 2, 24),
    (GROUP_VERSION, 1, 22),
    (ELIGIBLE_LEADER_REPLICAS_VERSION, 1, 26),
)

DEPENDENCIES: Final[dict[tuple[str, int], dict[str, int]]] = {
    (ELIGIBLE_LEADER_REPLICAS_VERSION, 1): {METADATA_VERSION: ELR_FROM},
}
"""(feature, level) → the lowest levels of other features that it needs. Every level above 0 needs metadata.version."""


def metadata_version_of(name: str) -> int | None:
    """The level named by a full name such as 4.3-IV0, or the newest level of a release such as 4.3; None if unknown."""
    found = None
    for version in METADATA_VERSIONS.values():
        if name in (version.name, version.release):
            found = version.level
    return found


def metadata_version_name(level: int) -> str:
    """The name of a level of metadata.version, such as 4.3-IV0; the number itself if this release does not know it."""
    version = METADATA_VERSIONS.get(level)
    return str(level) if version is None else version.name


def default_levels(metadata_version: int) -> dict[str, int]:
    """The levels that a new cluster gets with `metadata_version`, without features at level 0.

    They include kraft.version, although the quorum writes that as a control record and not as a feature record.
    """
    levels = {METADATA_VERSION: metadata_version}
    levels |= {name: level for name, level, needed in _DEFAULT_LEVELS if metadata_version >= needed}
    return levels


def loses_records(current: int, target: int) -> bool:
    """Whether lowering metadata.version from `current` to `target` could make stored records unreadable."""
    return any(METADATA_VERSIONS[level].changes_records for level in range(target + 1, current + 1))


def record_version(record: Message, metadata_version: int) -> int:
    """The version in which `record` is written under `metadata_version`."""
    if isinstance(record, PartitionRecord | PartitionChangeRecord):
        return 2 if metadata_version >= ELR_FROM else 1 if metadata_version >= DIRECTORIES_FROM else 0
    if isinstance(record, RegisterBrokerRecord):
        if metadata_version >= CORDONED_DIRECTORIES_FROM:
            return 4
        return 3 if metadata_version >= DIRECTORIES_FROM else 2 if metadata_version >= _MIGRATION_FROM else 1
    if isinstance(record, BrokerRegistrationChangeRecord):
        return _registration_change_version(record, metadata_version)
    return 0


def _registration_change_version(record: BrokerRegistrationChangeRecord, metadata_version: int) -> int:
    """The lowest version that has all the changed fields, as Apache's controller writes it."""
    if record.cordoned_log_dirs is not None:
        version, needed = 3, CORDONED_DIRECTORIES_FROM
    elif record.log_dirs:
        version, needed = 2, DIRECTORIES_FROM
    else:
        version, needed = (1 if record.in_controlled_shutdown else 0), METADATA_VERSION_MIN
    if metadata_version < needed:
        raise BrokenInvariant(
            f"metadata.version {metadata_version} cannot represent {record!r}, which needs {needed}: do not decide it"
        )
    return version
