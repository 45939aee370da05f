"""Client quotas."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode

from ottla.client.admin.quotas import DEFAULT_ENTITY, QuotaEntity
from ottla.errors import InvalidRequestError
from ottla.wire.apis import ApiKey
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)


def test_quotas_are_set_found_and_removed(
    admin: Any, name: str, needs: Callable[..., None], eventually: Callable[..., None]
) -> None:
    needs(ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DESCRIBE_CLIENT_QUOTAS)
    user, both = QuotaEntity(user=name), QuotaEntity(user=name, client_id=DEFAULT_ENTITY)
    changes = {user: {"producer_byte_rate": 1024, "request_percentage": 2.5}, both: {"request_percentage": 50}}
    admin.alter_client_quotas(changes).raise_first()
    found = {user: {"producer_byte_rate": 1024.0, "request_percentage": 2.5}, both: {"request_percentage": 50.0}}
    eventually(lambda: admin.describe_client_quotas(user=name), found)
    assert admin.describe_client_quotas(user=name, strict=True) == {user: found[user]}
    assert admin.describe_client_quotas(user="*", client_id="<default>") == {both: found[both]}
    assert admin.describe_client_quotas(ip="10.0.0.7") == {}
    assert found.items() <= admin.describe_client_quotas().items()
    admin.alter_client_quotas({user: {"producer_byte_rate": 1}}, validate_only=True).raise_first()
    admin.alter_client_quotas({user: {"producer_byte_rate": None}, both: {"request_percentage": None}}).raise_first()
    eventually(lambda: admin.describe_client_quotas(user=name), {user: {"request_percentage": 2.5}})


def test_each_entity_has_its_own_result(scripted: Any, node: FakeNode) -> None:
    entity = AlterClientQuotasResponseEntityData(entity_type="ip", entity_name=None)
    planet = AlterClientQuotasResponseEntityData(entity_type="planet", entity_name="mars")
    entry = AlterClientQuotasResponseEntryData(error_code=42, error_message="no", entity=[entity, planet])
    node.handlers[AlterClientQuotasRequest] = lambda request, version: AlterClientQuotasResponse(entries=[entry])
    results = scripted.alter_client_quotas({QuotaEntity(ip=DEFAULT_ENTITY): {"connection_creation_rate": 1}})
    with pytest.raises(InvalidRequestError, match="the quotas of ip <default> were not changed: no"):
        results[QuotaEntity(ip=DEFAULT_ENTITY)]


@pytest.mark.parametrize(
    ("quotas", "kind", "text"),
    [
        ({QuotaEntity(): {}}, ValueError, "quotas: QuotaEntity.* is no entity"),
        ({"alice": {}}, ValueError, "quotas: 'alice' is no entity"),
        ({QuotaEntity("a"): {"x": "fast"}}, TypeError, r"quotas\[.*\]\['x'\] must be a number"),
        ({QuotaEntity("a"): 7}, TypeError, "quotas.* must be a mapping"),
        ([], TypeError, "quotas must be a mapping"),
    ],
)
def test_bad_argument_is_named(scripted: Any, quotas: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        scripted.alter_client_quotas(quotas)
