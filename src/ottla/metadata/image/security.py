"""Who may do what, and how fast: access control lists, SCRAM credentials, delegation tokens and client quotas.

`SecurityImage` holds the records themselves by key, `SecurityDelta` replays records onto one and lists the keys that changed.
What they mean is said where they are used: the authorizer, the login, the quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ottla.ids import Uuid
from ottla.metadata.image.copy_on_write import CopyOnWriteMap
from ottla.wire.base import Message
from ottla.wire.messages import metadata_records as records

CredentialKey = tuple[str, int]
"""(user, mechanism: 1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512)."""
QuotaEntity = tuple[tuple[str, str | None], ...]
"""(entity type, name; None for the default) pairs, sorted by type."""
QuotaKey = tuple[QuotaEntity, str]
"""(entity, key such as `producer_byte_rate`)."""


class SecurityImage(NamedTuple):
    """The records that are in force, by key."""

    acls: Mapping[Uuid, records.AccessControlEntryRecord] = MappingProxyType({})
    credentials: Mapping[CredentialKey, records.UserScramCredentialRecord] = MappingProxyType({})
    tokens: Mapping[str, records.DelegationTokenRecord] = MappingProxyType({})
    """By token id."""
    quotas: Mapping[QuotaKey, records.ClientQuotaRecord] = MappingProxyType({})

    def records(self) -> Iterator[Message]:
        """The records of a snapshot."""
        for by_key in self:
            yield from by_key.values()


class SecurityDelta:
    """`base` with the replayed records applied, and the sets of what they changed."""

    def __init__(self, base: SecurityImage) -> None:
        self.changed_acls: set[Uuid] = set()
        """Access control entries that were created or removed; the other sets likewise."""
        self.changed_credentials: set[CredentialKey] = set()
        self.changed_tokens: set[str] = set()
        self.changed_quotas: set[QuotaKey] = set()
        self._acls = CopyOnWriteMap(base.acls)
        self._credentials = CopyOnWriteMap(base.credentials)
        self._tokens = CopyOnWriteMap(base.tokens)
        self._quotas = CopyOnWriteMap(base.quotas)
        self._base = base

    def finish(self) -> SecurityImage:
        """The new image; `base` itself if nothing changed."""
        if not (self.changed_acls or self.changed_credentials or self.changed_tokens or self.changed_quotas):
            return self._base
        return SecurityImage(self._acls.now, self._credentials.now, self._tokens.now, self._quotas.now)

    def compare(self, image: SecurityImage) -> None:
        """Note as changed what differs in `image`, if the records between are not known."""
        self.changed_acls.update(_differing(self._base.acls, image.acls))
        self.changed_credentials.update(_differing(self._base.credentials, image.credentials))
        self.changed_tokens.update(_differing(self._base.tokens, image.tokens))
        self.changed_quotas.update(_differing(self._base.quotas, image.quotas))

    def _replay_acl(self, record: records.AccessControlEntryRecord) -> None:
        self._acls.edit()[record.id] = record
        self.changed_acls.add(record.id)

    def _replay_acl_removal(self, record: records.RemoveAccessControlEntryRecord) -> None:
        self._acls.edit().pop(record.id, None)
        self.changed_acls.add(record.id)

    def _replay_credential(self, record: records.UserScramCredentialRecord) -> None:
        key = record.name, record.mechanism
        self._credentials.edit()[key] = record
        self.changed_credentials.add(key)

    def _replay_credential_removal(self, record: records.RemoveUserScramCredentialRecord) -> None:
        key = record.name, record.mechanism
        self._credentials.edit().pop(key, None)
        self.changed_credentials.add(key)

    def _replay_token(self, record: records.DelegationTokenRecord) -> None:
        self._tokens.edit()[record.token_id] = record
        self.changed_tokens.add(record.token_id)

    def _replay_token_removal(self, record: records.RemoveDelegationTokenRecord) -> None:
        self._tokens.edit().pop(record.token_id, None)
        self.changed_tokens.add(record.token_id)

    def _replay_quota(self, record: records.ClientQuotaRecord) -> None:
        key = quota_key(record)
        if record.remove:
            self._quotas.edit().pop(key, None)
        else:
            self._quotas.edit()[key] = record
        self.changed_quotas.add(key)


REPLAYS: Final[dict[type[Message], Callable[[SecurityDelta, Any], None]]] = {
    records.AccessControlEntryRecord: SecurityDelta._replay_acl,
    records.RemoveAccessControlEntryRecord: SecurityDelta._replay_acl_removal,
    records.UserScramCredentialRecord: SecurityDelta._replay_credential,
    records.RemoveUserScramCredentialRecord: SecurityDelta._replay_credential_removal,
    records.DelegationTokenRecord: SecurityDelta._replay_token,
    records.RemoveDelegationTokenRecord: SecurityDelta._replay_token_removal,
    records.ClientQuotaRecord: SecurityDelta._replay_quota,
}
"""Record class → its replay. A quota has no removal record: its own has a field `remove`."""


def quota_key(record: records.ClientQuotaRecord) -> QuotaKey:
    """The key of a quota's record in `SecurityImage.quotas`."""
    return quota_entity((part.entity_type, part.entity_name) for part in record.entity), record.key


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """The parts by their type; of two with one type, the last."""
    return tuple(sorted(dict(parts).items()))


def _differing(before: Mapping[Any, Message], after: Mapping[Any, Message]) -> Iterator[Any]:
    if before is not after:
        yield from (key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
