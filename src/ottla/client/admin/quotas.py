"""Client quotas: describe and alter (DescribeClientQuotas, AlterClientQuotas)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.client.admin.checks import mapping, text
from ottla.client.admin.requests import raise_refused, refused_or, to_controller
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster
from ottla.errors import ArgumentError, KafkaError
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    OpData,
)
from ottla.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

DEFAULT_ENTITY: Final = "<default>"
"""In place of a name: the quota of all users, clients or addresses that have none of their own."""

ANY_ENTITY: Final = "*"
"""In place of a name in `describe_client_quotas`: every name, and the default."""

_EXACT, _DEFAULT, _ANY = 0, 1, 2
_TYPES = {"user": "user", "client_id": "client-id", "ip": "ip"}
_FIELDS = {kafka: field for field, kafka in _TYPES.items()}


class QuotaEntity(NamedTuple):
    """Whose quota it is: a user, a client id, both together, or an address. None: not part of it."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None


async def describe_client_quotas(
    cluster: Cluster, *, user: str | None = None, client_id: str | None = None, ip: str | None = None, strict: bool = False
) -> dict[QuotaEntity, dict[str, float]]:
    """The quotas of entities that match: a name, `"<default>"`, or `"*"` for every one. Without any filter: all quotas.

    With `strict`, entities that have more parts than the filter names are left out.
    """
    names = QuotaEntity(user, client_id, ip)._asdict()
    components = [
        ComponentData(
            entity_type=_TYPES[field],
            match_type=_ANY if name == ANY_ENTITY else _DEFAULT if name == DEFAULT_ENTITY else _EXACT,
            match=None if name in (ANY_ENTITY, DEFAULT_ENTITY) else text(name, field),
        )
        for field, name in names.items()
        if name is not None
    ]
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    response: DescribeClientQuotasResponse = await cluster.ask_any(request)
    raise_refused(response.error_code, "the client quotas cannot be described", response.error_message)
    return {_entity(entry.entity): {each.key: each.value for each in entry.values} for entry in response.entries or ()}


async def alter_client_quotas(
    cluster: Cluster, quotas: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
) -> Results[QuotaEntity, None]:
    """Set and remove quotas: `{QuotaEntity(user="alice"): {"producer_byte_rate": 1e6, "consumer_byte_rate": None}}`.

    A number sets, None removes. Quotas that are not named stay as they are.
    """
    mapping(quotas, "quotas")
    wanted = {_checked(entity): _entry(entity, changes) for entity, changes in quotas.items()}

    async def ask(items: list[QuotaEntity]) -> dict[QuotaEntity, KafkaError | None]:
        request = AlterClientQuotasRequest(entries=[wanted[each] for each in items], validate_only=validate_only)
        response: AlterClientQuotasResponse = await cluster.ask_controller(request)
        return {
            (entity := _entity(entry.entity)): refused_or(
                entry.error_code, f"the quotas of {_shown(entity)} were not changed", entry.error_message, None
            )
            for entry in response.entries
        }

    return results_for(wanted, await to_controller(cluster, wanted, ask) if wanted else {})


def _checked(entity: QuotaEntity) -> QuotaEntity:
    if not isinstance(entity, QuotaEntity) or not any(entity):
        raise ArgumentError(f'quotas: {entity!r} is no entity: write QuotaEntity(user="alice"), with client_id or ip')
    return entity


def _entry(entity: QuotaEntity, changes: Mapping[str, float | None]) -> AlterClientQuotasRequestEntryData:
    argument = f"quotas[{entity!r}]"
    mapping(changes, argument)
    for name, value in changes.items():
        text(name, f"{argument}: name of a quota")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise TypeError(f"{argument}[{name!r}] must be a number or None, not {value!r}")
    return AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasRequestEntityData(entity_type=_TYPES[field], entity_name=None if name == DEFAULT_ENTITY else name)
            for field, name in entity._asdict().items()
            if name is not None
        ],
        ops=[OpData(key=name, value=float(value or 0), remove=value is None) for name, value in changes.items()],
    )


def _entity(parts: list[Any]) -> QuotaEntity:
    """The entity of a response. Parts of a type that a newer broker knows are left out."""
    names = {_FIELDS[part.entity_type]: part.entity_name for part in parts if part.entity_type in _FIELDS}
    return QuotaEntity(**{field: DEFAULT_ENTITY if name is None else name for field, name in names.items()})


def _shown(entity: QuotaEntity) -> str:
    return ", ".join(f"{_TYPES[field]} {name}" for field, name in entity._asdict().items() if name is not None)
