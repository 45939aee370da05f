"""The records that a controller writes when it becomes active: bootstrap records, aborts, its own registration.

The bootstrap records set the first feature levels in an empty log. They come from `bootstrap.checkpoint`, which formatting left
in the directory of the metadata log, and are written as one metadata transaction, as Apache's controller does. A metadata
transaction that the last controller left open is aborted. Pure functions, except `read_bootstrap`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.env import Disk
from ottla.errors import CorruptFile
from ottla.ids import Uuid
from ottla.metadata.features import (
    CONTROLLER_REGISTRATION_FROM,
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_MIN,
    TRANSACTIONS_FROM,
)
from ottla.metadata.image.cluster import Endpoint
from ottla.metadata.image.image import MetadataImage, ResourceType
from ottla.raft.snapshots import read_snapshot
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    EndTransactionRecord,
    FeatureLevelRecord,
    RegisterControllerRecord,
)

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
_REMEDY = "Format the directory, or restore the file from a copy"


def read_bootstrap(disk: Disk, directory: str) -> list[Message]:
    """The records that a new cluster begins with; raises `CorruptFile` if the file is missing."""
    path = f"{directory}/{BOOTSTRAP_CHECKPOINT}"
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        raise CorruptFile(path, 0, "the file is missing, and the metadata log is empty", _REMEDY) from None
    return read_snapshot(path, data).records


def is_new_cluster(image: MetadataImage) -> bool:
    """Whether the log is empty, or has only the beginning of its bootstrap records."""
    return not image.features and not image.cluster.brokers and not image.topics.by_id and not image.configs


def first_records(bootstrap: Iterable[Message], is_cut_short: bool, min_insync_replicas: int) -> list[Message]:
    """The records for an empty log; `is_cut_short` if an unfinished bootstrap transaction is in it."""
    records: list[Message] = list(bootstrap)
    levels = {record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)}
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0:
        # Which replicas are eligible leaders depends on min.insync.replicas: it must be the same for the whole cluster.
        records.append(
            ConfigRecord(
                resource_type=ResourceType.BROKER,
                resource_name="",
                name="min.insync.replicas",
                value=str(min_insync_replicas),
            )
        )
    if levels.get(METADATA_VERSION, METADATA_VERSION_MIN) >= TRANSACTIONS_FROM:
        records = [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]
    return [*_abort(is_cut_short), *records]


def later_records(image: MetadataImage) -> list[Message]:
    """The records for a log that is in use: the abort of a transaction that its controller left open."""
    return _abort(image.open_transaction is not None)


def _abort(is_cut_short: bool) -> list[Message]:
    return [AbortTransactionRecord(reason="Controller failover")] if is_cut_short else []


def registration(
    image: MetadataImage,
    node_id: int,
    incarnation_id: Uuid,
    endpoints: Sequence[Endpoint],
    features: Mapping[str, tuple[int, int]],
) -> list[Message]:
    """The registration of this controller, written once per start because each start is a new incarnation."""
    known = image.cluster.controllers.get(node_id)
    if image.metadata_version < CONTROLLER_REGISTRATION_FROM or (known is not None and known.incarnation_id == incarnation_id):
        return []
    return [
        RegisterControllerRecord(
            controller_id=node_id,
            incarnation_id=incarnation_id,
            zk_migration_ready=False,
            end_points=[
                ControllerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
                for each in endpoints
            ],
            features=[
                ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(features.items())
            ],
        )
    ]
