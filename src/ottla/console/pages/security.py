"""Who may do what: access rules, SCRAM users, quotas, delegation tokens."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable
from typing import TypeVar

from ottla.client.admin.acl_types import AclBinding, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.client.admin.acls import create_acls, delete_acls, describe_acls, shown
from ottla.client.admin.quotas import DEFAULT_ENTITY, QuotaEntity, alter_client_quotas, describe_client_quotas
from ottla.client.admin.scram import (
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from ottla.client.admin.tokens import (
    create_delegation_token,
    describe_delegation_tokens,
    expire_delegation_token,
    renew_delegation_token,
)
from ottla.console.app import Data, Refused, Result, Visit, change, page
from ottla.console.clusters import soon
from ottla.console.pages.fields import needed, whole_number
from ottla.console.pages.tables import tabulate
from ottla.errors import ArgumentError, KafkaError
from ottla.errors.codes import ErrorCode

T = TypeVar("T")

CHANGE_S = 30.0
ITERATIONS = 8192
HOUR_MS = 3_600_000
QUOTAS = {
    "producer_byte_rate": "bytes/s produced, per broker",
    "consumer_byte_rate": "bytes/s fetched, per broker",
    "request_percentage": "percent of a thread, per broker",
    "controller_mutation_rate": "partitions created, added and deleted per second",
    "connection_creation_rate": "new connections/s of an address, per broker",
}
NO_AUTHORIZER = (
    "This cluster has no authorizer: everybody who reaches it may do everything. To have rules, set authorizer.class.name and "
    "super.users on all nodes, and restart them one by one."
)
NO_TOKENS = "This cluster has no delegation tokens: set delegation.token.secret.key to the same secret on all nodes."


async def _or_absent(question: Awaitable[T], code: ErrorCode) -> T | None:
    """The answer; None if the cluster says that it has no such thing."""
    try:
        return await soon(question)
    except KafkaError as error:
        if error.code == code:
            return None
        raise


# Access rules


@page("/acls", "acls.html")
async def acls(visit: Visit) -> Data:
    """All rules."""
    found = await _or_absent(describe_acls(visit.view.cluster), ErrorCode.SECURITY_DISABLED)
    table = tabulate(
        visit,
        found or [],
        shown,
        {
            "principal": lambda each: each.principal,
            "resource": lambda each: (_word(each.resource_type), each.resource_name),
            "operation": lambda each: _word(each.operation),
        },
        "principal",
    )
    return {
        "title": "Access rules",
        "absent": NO_AUTHORIZER if found is None else "",
        "table": table._replace(rows=[])._asdict(),
        "rows": [_rule(each) for each in table.rows],
        "resource_types": [_word(each) for each in AclResourceType if each > AclResourceType.ANY],
        "operations": [_word(each) for each in AclOperation if each > AclOperation.ANY],
    }


def _word(value: AclResourceType | AclOperation | AclPermission | PatternType | str) -> str:
    return value if isinstance(value, str) else value.name.lower()


def _rule(each: AclBinding) -> Data:
    return {
        "principal": each.principal,
        "host": each.host,
        "permission": _word(each.permission),
        "operation": _word(each.operation),
        "resource_type": _word(each.resource_type),
        "resource_name": each.resource_name,
        "pattern_type": _word(each.pattern_type),
        "text": shown(each),
    }


def _binding(visit: Visit) -> AclBinding:
    form = visit.form
    principal = needed(form, "principal", "who the rule is for")
    kind = needed(form, "resource_type", "what it protects").upper()
    name = "kafka-cluster" if kind == "CLUSTER" else needed(form, "resource_name", "the name of what it protects")
    return AclBinding(
        kind,
        name,
        principal if ":" in principal else f"User:{principal}",
        needed(form, "operation", "what may be done").upper(),
        form.get("permission", "allow").upper(),
        form.get("host", "").strip() or "*",
        form.get("pattern_type", "literal").upper(),
    )


@change("/acls/add")
async def add_acl(visit: Visit) -> tuple[str, str]:
    """A new rule."""
    rule = _binding(visit)
    (await soon(create_acls(visit.view.cluster, [rule]), CHANGE_S)).raise_first()
    return "/acls", f"The rule was added: {shown(rule)}."


@change("/acls/delete")
async def delete_acl(visit: Visit) -> tuple[str, str]:
    """Delete exactly one rule."""
    rule = _binding(visit)
    results = await soon(delete_acls(visit.view.cluster, [rule]), CHANGE_S)
    if not any(results.raise_first().values()):
        raise Refused(404, f"there is no such rule any more: {shown(rule)}")
    return "/acls", f"The rule was deleted: {shown(rule)}."


# Users


@page("/users", "users.html")
async def users(visit: Visit) -> Data:
    """SCRAM credentials."""
    results = await soon(describe_user_scram_credentials(visit.view.cluster))
    _ = results.errors
    found = list(results.values_found.items())
    table = tabulate(visit, found, lambda each: each[0], {"name": lambda each: each[0]}, "name")
    return {
        "title": "Users",
        "table": table._replace(rows=[])._asdict(),
        "rows": [
            {
                "name": name,
                "credentials": [
                    {"mechanism": _mechanism(each.mechanism), "iterations": each.iterations} for each in credentials
                ],
            }
            for name, credentials in table.rows
        ],
        "iterations": ITERATIONS,
    }


def _mechanism(each: ScramMechanism) -> str:
    return each.name.replace("_", "-")


def _wanted_mechanism(visit: Visit) -> ScramMechanism:
    name = visit.form.get("mechanism", "SCRAM-SHA-512").replace("-", "_")
    if name not in ("SCRAM_SHA_256", "SCRAM_SHA_512"):
        raise Refused(400, "nothing was changed: the mechanism is SCRAM-SHA-256 or SCRAM-SHA-512")
    return ScramMechanism[name]


@change("/users/set")
async def set_user(visit: Visit) -> tuple[str, str]:
    """Set a user's password for a mechanism."""
    name = needed(visit.form, "name", "the user's name")
    password = visit.form.get("password", "")
    if not password:
        raise Refused(400, "nothing was changed: the password is empty")
    mechanism = _wanted_mechanism(visit)
    iterations = whole_number(visit.form.get("iterations") or str(ITERATIONS), "the number of iterations", 4096)
    upsertion = ScramUpsertion(name, mechanism, password, iterations)
    (await soon(alter_user_scram_credentials(visit.view.cluster, [upsertion]), CHANGE_S)).raise_first()
    return "/users", f"The password of {name} for {_mechanism(mechanism)} was set."


@change("/users/delete")
async def delete_user(visit: Visit) -> tuple[str, str]:
    """Delete a user's credential for a mechanism."""
    name, mechanism = needed(visit.form, "name", "the user's name"), _wanted_mechanism(visit)
    (await soon(alter_user_scram_credentials(visit.view.cluster, [ScramDeletion(name, mechanism)]), CHANGE_S)).raise_first()
    return "/users", f"{name} can no longer log in with {_mechanism(mechanism)}."


# Quotas


@page("/quotas", "quotas.html")
async def quotas(visit: Visit) -> Data:
    """All quotas."""
    found = await soon(describe_client_quotas(visit.view.cluster))
    table = tabulate(
        visit, list(found.items()), lambda each: _entity_text(each[0]), {"name": lambda each: _entity_text(each[0])}, "name"
    )
    return {
        "title": "Quotas",
        "table": table._replace(rows=[])._asdict(),
        "names": QUOTAS,
        "rows": [{"text": _entity_text(entity), **entity._asdict(), "limits": limits} for entity, limits in table.rows],
    }


def _entity_text(entity: QuotaEntity) -> str:
    words = {"user": "user", "client_id": "client", "ip": "address"}
    parts = [
        f"every other {words[field]}" if name == DEFAULT_ENTITY else f"{words[field]} {name}"
        for field, name in entity._asdict().items()
        if name is not None
    ]
    return ", ".join(parts)


def _entity(visit: Visit) -> QuotaEntity:
    found = QuotaEntity(*(visit.form.get(name, "").strip() or None for name in ("user", "client_id", "ip")))
    if not any(found):
        raise Refused(400, f"nothing was changed: name a user, a client id or an address; {DEFAULT_ENTITY} is every other one")
    return found


def _quota(visit: Visit) -> str:
    name = visit.form.get("quota", "")
    if name not in QUOTAS:
        raise Refused(400, f"nothing was changed: {name!r} is no quota, there are {', '.join(QUOTAS)}")
    return name


@change("/quotas/set")
async def set_quota(visit: Visit) -> tuple[str, str]:
    """Set one limit."""
    entity, name = _entity(visit), _quota(visit)
    try:
        limit = float(visit.form.get("limit", ""))
    except ValueError:
        raise Refused(400, "nothing was changed: the limit must be a number, such as 1048576") from None
    (await soon(alter_client_quotas(visit.view.cluster, {entity: {name: limit}}), CHANGE_S)).raise_first()
    return "/quotas", f"{name} of {_entity_text(entity)} is {limit:.15g}."


@change("/quotas/remove")
async def remove_quota(visit: Visit) -> tuple[str, str]:
    """Remove one limit."""
    entity, name = _entity(visit), _quota(visit)
    (await soon(alter_client_quotas(visit.view.cluster, {entity: {name: None}}), CHANGE_S)).raise_first()
    return "/quotas", f"{name} of {_entity_text(entity)} was removed."


# Delegation tokens


@page("/tokens", "tokens.html")
async def tokens(visit: Visit) -> Data:
    """The tokens that the console's own login may see. Their secrets are not shown."""
    absent, found = "", []
    try:
        found = await soon(describe_delegation_tokens(visit.view.cluster))
    except KafkaError as error:
        if error.code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED:
            absent = NO_TOKENS
        elif error.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED:
            absent = "Tokens are for logins: give the console a SASL login or a client certificate with --command-config."
        else:
            raise
    return {
        "title": "Delegation tokens",
        "absent": absent,
        "rows": [
            {
                "id": each.id,
                "owner": each.owner,
                "requester": each.requester,
                "renewers": list(each.renewers),
                "issued": each.issued,
                "expires": each.expires,
                "ends": each.max_lifetime_ends,
            }
            for each in sorted(found, key=lambda each: each.id)
        ],
    }


@change("/tokens/create")
async def create_token(visit: Visit) -> Result:
    """A new token. Its secret is shown once, on the page that answers."""
    form = visit.form
    renewers = [each if ":" in each else f"User:{each}" for each in form.get("renewers", "").replace(",", " ").split()]
    owner = form.get("owner", "").strip()
    hours = form.get("hours", "").strip()
    lifetime_ms = whole_number(hours, "the lifetime in hours", 1) * HOUR_MS if hours else -1
    try:
        made = await soon(
            create_delegation_token(
                visit.view.cluster,
                owner=(owner if ":" in owner else f"User:{owner}") if owner else None,
                renewers=renewers,
                max_lifetime_ms=lifetime_ms,
            ),
            CHANGE_S,
        )
    except ArgumentError as problem:
        raise Refused(400, str(problem)) from None
    data = {
        "title": "A new token",
        "id": made.id,
        "hmac": b64encode(made.hmac).decode(),
        "owner": made.owner,
        "expires": made.expires,
    }
    return Result("token.html", data, f"Token {made.id} was created for {made.owner}.")


async def _hmac(visit: Visit) -> bytes:
    """The secret of the token that the form names by its id."""
    name = needed(visit.form, "id", "the token's id")
    for each in await soon(describe_delegation_tokens(visit.view.cluster), CHANGE_S):
        if each.id == name:
            return each.hmac
    raise Refused(404, f"there is no token {name} any more")


@change("/tokens/renew")
async def renew_token(visit: Visit) -> tuple[str, str]:
    """Let a token expire later, by the brokers' period."""
    await soon(renew_delegation_token(visit.view.cluster, await _hmac(visit)), CHANGE_S)
    return "/tokens", f"Token {visit.form['id']} was renewed."


@change("/tokens/expire")
async def expire_token(visit: Visit) -> tuple[str, str]:
    """End a token now."""
    await soon(expire_delegation_token(visit.view.cluster, await _hmac(visit)), CHANGE_S)
    return "/tokens", f"Token {visit.form['id']} has ended."
