"""Decides on AlterClientQuotas: limits for users, client ids and addresses. Pure.

Each entity of a request succeeds or fails on its own; of one that comes twice the first entry counts, and its answer is an
error, as in Kafka. What would change nothing writes nothing.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.new_partitions import RECORDS_PER_REQUEST_MAX
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.image.security import QuotaEntity, quota_entity
from ottla.wire.base import Message
from ottla.wire.messages import metadata_records
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
CLIENT_KEYS: Final = {
    "producer_byte_rate": 2**63 - 1,
    "consumer_byte_rate": 2**63 - 1,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
"""Key of a limit for users and client ids → the largest whole number; None: fractions are allowed."""
IP_KEYS: Final = {"connection_creation_rate": 2**31 - 1}
_FRACTION: Final = 1e-6
"""How far a whole number may be off, as in Kafka."""


def alter_client_quotas(
    state: ControllerState, request: AlterClientQuotasRequest, now_ms: int
) -> Decision[AlterClientQuotasResponse]:
    """Set and remove limits; with `validate_only`, write nothing."""
    response = AlterClientQuotasResponse()
    records: list[Message] = []
    answers: dict[QuotaEntity, AlterClientQuotasResponseEntryData] = {}
    for entry in request.entries:
        entity = quota_entity((part.entity_type, part.entity_name) for part in entry.entity)
        if entity in answers:
            repeated = _refused(f"{_text_of(entity)} comes more than once: only the first of its changes are made")
            answers[entity].error_code, answers[entity].error_message = repeated.code, str(repeated)
            continue
        answer = answers[entity] = AlterClientQuotasResponseEntryData(error_message=None)
        answer.entity = [AlterClientQuotasResponseEntityData(entity_type=type_, entity_name=name) for type_, name in entity]
        response.entries.append(answer)
        try:
            records += _changes(state, entity, entry)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, str(error)
    if len(records) > RECORDS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"at most {RECORDS_PER_REQUEST_MAX} quotas can be changed at once: split it"
        )
    return Decision(response, () if request.validate_only else records)


def _changes(state: ControllerState, entity: QuotaEntity, entry: AlterClientQuotasRequestEntryData) -> list[Message]:
    keys = _keys_of(entity)
    if len({op.key for op in entry.ops}) < len(entry.ops):
        raise _refused(f"a key comes more than once for {_text_of(entity)}")
    records: list[Message] = []
    for op in entry.ops:
        known = state.image.security.quotas.get((entity, op.key))
        if op.remove:
            if known is None:
                continue
        else:
            _check(keys, op.key, op.value)
            if known is not None and known.value == op.value:
                continue
        parts = [metadata_records.EntityData(entity_type=type_, entity_name=name) for type_, name in entity]
        record = metadata_records.ClientQuotaRecord(entity=parts, key=op.key, remove=op.remove)
        if not op.remove:
            record.value = op.value
        records.append(record)
    return records


def _keys_of(entity: QuotaEntity) -> dict[str, int | None]:
    """The keys of limits that an entity may have."""
    if not entity:
        raise _refused("a quota needs a user, a client-id or an ip")
    types = {type_ for type_, _ in entity}
    for type_, name in entity:
        if type_ not in (USER, CLIENT_ID, IP):
            raise _refused(f"{type_!r} is no type of entity: it is user, client-id or ip")
        if name == "":
            raise _refused(f"the name of the {type_} is empty: no name at all means the default")
    if IP not in types:
        return dict(CLIENT_KEYS)
    if len(types) > 1:
        raise _refused("a quota of an ip cannot be for a user or a client-id too")
    address = entity[0][1]
    if address is not None:
        try:
            ip_address(address)
        except ValueError:
            raise _refused(f"{address!r} is no IP address") from None
    return dict(IP_KEYS)


def _check(keys: dict[str, int | None], key: str, value: float) -> None:
    if key not in keys:
        raise _refused(f"{key!r} is no quota of this entity: it has {', '.join(keys)}")
    if not value > 0:
        raise _refused(f"the quota {key} must be above 0, not {value:g}")
    largest = keys[key]
    if largest is not None:
        if value > largest:
            raise _refused(f"the quota {key} is at most {largest}")
        if abs(value - round(value)) > _FRACTION:
            raise _refused(f"the quota {key} is a whole number, not {value:g}")


def _text_of(entity: QuotaEntity) -> str:
    return ", ".join(f"the default {type_}" if name is None else f"{type_} {name}" for type_, name in entity)


def _refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
