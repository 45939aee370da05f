"""The keys of records that Ottla keeps but does not serve yet (tokens, credentials, quotas, access control lists)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.wire.base import Message
from ottla.wire.messages import metadata_records as records

Key = tuple[object, ...]

_TOKEN, _SCRAM, _QUOTA, _ACL = (
    records.DelegationTokenRecord.KEY,
    records.UserScramCredentialRecord.KEY,
    records.ClientQuotaRecord.KEY,
    records.AccessControlEntryRecord.KEY,
)


def _quota_key(record: records.ClientQuotaRecord) -> Key:
    entity = sorted((part.entity_type, part.entity_name is not None, part.entity_name or "") for part in record.entity)
    return (_QUOTA, tuple(entity), record.key)


KEPT: Final[dict[type[Message], Callable[[Any], Key]]] = {
    records.DelegationTokenRecord: lambda record: (_TOKEN, record.token_id),
    records.UserScramCredentialRecord: lambda record: (_SCRAM, record.name, record.mechanism),
    records.ClientQuotaRecord: _quota_key,
    records.AccessControlEntryRecord: lambda record: (_ACL, record.id),
}
"""Record class → its key in `MetadataImage.other`. A quota has no removal record: its own has a field `remove`."""

REMOVALS: Final[dict[type[Message], Callable[[Any], Key]]] = {
    records.RemoveDelegationTokenRecord: lambda record: (_TOKEN, record.token_id),
    records.RemoveUserScramCredentialRecord: lambda record: (_SCRAM, record.name, record.mechanism),
    records.RemoveAccessControlEntryRecord: lambda record: (_ACL, record.id),
}
"""Record class → the key of what it removes."""
