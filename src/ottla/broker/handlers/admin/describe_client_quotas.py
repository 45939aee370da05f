"""DescribeClientQuotas: the limits of the entities that a filter selects, from this broker's copy of the metadata.

Both versions (0 and 1) have the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from ottla.broker.requests.context import Handled, RequestContext
from ottla.broker.requests.scheduler import off_loop
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.client_quotas import CLIENT_ID, IP, USER
from ottla.metadata.image.security import QuotaEntity, QuotaKey
from ottla.wire.elements import MANY_ELEMENTS
from ottla.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from ottla.wire.messages.metadata_records import ClientQuotaRecord

EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2
"""How a component of a filter matches: this name, the default entity, or any entity of its type."""

Filter = dict[str, tuple[int, str | None]]


def handle(context: RequestContext, request: DescribeClientQuotasRequest) -> Handled:
    wanted = _filter_of(request)
    quotas = context.services.metadata.image.security.quotas
    if len(quotas) > MANY_ELEMENTS:
        return off_loop(context, partial(_described, quotas, wanted, request.strict))
    return _described(quotas, wanted, request.strict)


def refuse(context: RequestContext, request: DescribeClientQuotasRequest, error: KafkaError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error.code, error_message=str(error), entries=None)


def _filter_of(request: DescribeClientQuotasRequest) -> Filter:
    wanted: Filter = {}
    for each in request.components:
        type_ = each.entity_type
        if type_ in wanted:
            raise _refused(f"the filter names {type_} more than once")
        if type_ not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{type_!r} is no type of entity: it is user, client-id or ip")
        if each.match_type not in (EXACT, DEFAULT, ANY):
            raise _refused(f"{each.match_type} is no way to match the {type_}: 0 is a name, 1 the default, 2 any")
        if (each.match_type == EXACT) != (each.match is not None):
            raise _refused(f"a filter for the {type_} has a name if it is for one name, and only then")
        wanted[type_] = (each.match_type, each.match)
    if IP in wanted and len(wanted) > 1:
        raise _refused("a quota of an ip is not for a user or a client-id too: no entity has both")
    return wanted


def _described(quotas: Mapping[QuotaKey, ClientQuotaRecord], wanted: Filter, is_strict: bool) -> DescribeClientQuotasResponse:
    entries: dict[QuotaEntity, EntryData] = {}
    for (entity, key), record in quotas.items():
        entry = entries.get(entity)
        if entry is None:
            if not _matches(dict(entity), wanted, is_strict):
                continue
            entry = entries[entity] = EntryData()
            entry.entity = [EntityData(entity_type=type_, entity_name=name) for type_, name in entity]
        entry.values.append(ValueData(key=key, value=record.value))
    return DescribeClientQuotasResponse(error_message=None, entries=list(entries.values()))


def _matches(entity: Mapping[str, str | None], wanted: Filter, is_strict: bool) -> bool:
    if is_strict and len(entity) != len(wanted):
        return False
    return all(type_ in entity and (how == ANY or entity[type_] == name) for type_, (how, name) in wanted.items())


def _refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
