"""Decides on AlterUserScramCredentials: sets and deletes users' SCRAM credentials. Pure.

The request has the salted password; the log gets the keys made of it. Each user is changed once in a request, and apart from
the others: what is wrong with one does not refuse the rest.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.features import SCRAM_FROM
from ottla.metadata.scram import HASH_NAMES, ITERATIONS_MAX, ITERATIONS_MIN, keys_of
from ottla.wire.base import Message
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.metadata_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord

_MECHANISMS: Final = "1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512"


def alter_scram_credentials(
    state: ControllerState, request: AlterUserScramCredentialsRequest, now_ms: int
) -> Decision[AlterUserScramCredentialsResponse]:
    """The answers: deletions, then upsertions, then what was refused, as in Kafka."""
    if state.image.metadata_version < SCRAM_FROM:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "SCRAM credentials need a newer metadata.version")
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*request.deletions, *request.upsertions]
    counts = Counter(change.name for change in changes)
    records: list[Message] = []
    done: list[AlterUserScramCredentialsResult] = []
    refused: dict[str, AlterUserScramCredentialsResult] = {}
    for change in changes:
        name = change.name
        try:
            if counts[name] > 1:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    f"user {name!r} is named more than once: a request may change one credential of each user",
                )
            records.append(_record(state, change))
        except KafkaError as refusal:
            refused[name] = AlterUserScramCredentialsResult(user=name, error_code=refusal.code, error_message=str(refusal))
        else:
            done.append(AlterUserScramCredentialsResult(user=name, error_message=None))
    return Decision(AlterUserScramCredentialsResponse(results=[*done, *refused.values()]), records)


def _record(state: ControllerState, change: ScramCredentialDeletion | ScramCredentialUpsertion) -> Message:
    """The record of one change. Raises `KafkaError`."""
    if not change.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the user name is empty")
    hash_name = HASH_NAMES.get(change.mechanism)
    if hash_name is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"there is no SCRAM mechanism {change.mechanism}: {_MECHANISMS}")
    if isinstance(change, ScramCredentialDeletion):
        if (change.name, change.mechanism) not in state.image.security.credentials:
            raise KafkaError(
                ErrorCode.RESOURCE_NOT_FOUND, f"user {change.name!r} has no credential for mechanism {change.mechanism}"
            )
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    if not ITERATIONS_MIN <= change.iterations <= ITERATIONS_MAX:
        raise KafkaError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"{change.iterations} iterations are not allowed: it must be {ITERATIONS_MIN} to {ITERATIONS_MAX}",
        )
    if not change.salted_password:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the salted password is empty")
    keys = keys_of(hash_name, bytes(change.salted_password))
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=bytes(change.salt),
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=change.iterations,
    )
