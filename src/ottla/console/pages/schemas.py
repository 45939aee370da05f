"""Schemas of a registry: subjects, versions, differences, compatibility; check, register, delete."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from ottla.console.app import Data, Refused, Visit, change, page
from ottla.console.clusters import NotAnswering, soon
from ottla.console.pages.fields import confirmed, needed, whole_number
from ottla.console.pages.tables import tabulate
from ottla.schemas.client import Reference, RegistryRefusedError, RegistryUnavailableError, Schema, SchemaRegistry

T = TypeVar("T")

READ_S = 0.5
"""How long one attempt may take: with all attempts a page is there within two seconds."""
START_S = 10.0
"""How long the first answer may take: the registry that `ottla up` offers begins with its first connection."""
CHANGE_S = 30.0
VERSIONS_MAX = 500
LEVELS = ("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE")
KINDS = ("AVRO", "JSON", "PROTOBUF")
GLOBAL = "all subjects"
_NOT_FOUND, _NOT_READABLE = 404, 422


def _url(visit: Visit) -> str:
    if visit.registry_url is None:
        raise Refused(404, "this console knows no schema registry: start it with --schema-registry URL")
    return visit.registry_url


async def _ask(visit: Visit, work: Callable[[SchemaRegistry], T]) -> T:
    """What a page needs of the registry."""
    url = _url(visit)
    clients = visit.console.registries
    client = clients.get(url)
    if client is not None:
        return await _tell(asyncio.to_thread(work, client), 1.9)
    first = SchemaRegistry(url, timeout_s=START_S, latest_ttl_s=0.0)
    try:
        answer = await _tell(asyncio.to_thread(work, first), START_S)
    finally:
        first.close()
    clients[url] = SchemaRegistry(url, timeout_s=READ_S, latest_ttl_s=0.0)
    return answer


async def _change(visit: Visit, work: Callable[[SchemaRegistry], T]) -> T:
    """A change, over a connection of its own."""
    client = SchemaRegistry(_url(visit), timeout_s=CHANGE_S / 3)
    try:
        return await _tell(asyncio.to_thread(work, client), CHANGE_S)
    finally:
        client.close()


async def _tell(question: Awaitable[T], wait_s: float) -> T:
    try:
        return await soon(question, wait_s)
    except RegistryUnavailableError as silent:
        raise Refused(503, str(silent)) from None
    except NotAnswering as silent:
        raise Refused(503, f"the schema registry does not answer: {silent}") from None
    except RegistryRefusedError as refused:
        raise Refused(refused.status if 400 <= refused.status < 500 else 502, str(refused)) from None


def _path(subject: str) -> str:
    return f"/schemas/{quote(subject, safe='')}"


@page("/schemas", "schemas.html")
async def schemas(visit: Visit) -> Data:
    """All subjects; `deleted=1`: also those that were deleted softly."""
    shows_deleted = visit.query.get("deleted") == "1"

    def work(registry: SchemaRegistry) -> tuple[list[str], list[str], str]:
        subjects = registry.subjects()
        every = registry.subjects(deleted=True) if shows_deleted else subjects
        return subjects, every, str(registry.call("GET", "/config").get("compatibilityLevel", ""))

    subjects, every, level = await _ask(visit, work)
    live = set(subjects)
    table = tabulate(visit, every, lambda each: each, {"name": lambda each: each}, "name")
    return {
        "title": "Schemas",
        "table": table._replace(rows=[])._asdict(),
        "shows_deleted": shows_deleted,
        "level": level,
        "levels": LEVELS,
        "kinds": KINDS,
        "rows": [{"name": each, "is_deleted": each not in live} for each in table.rows],
        "url": _shown_url(_url(visit)),
    }


def _shown_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


@page("/schemas/{subject}", "schema.html")
async def subject(visit: Visit) -> Data:
    """One subject: its newest version, or the one of `version`."""
    name = visit.segments["subject"]
    given = visit.query.get("version", "")

    def work(registry: SchemaRegistry) -> tuple[list[int], Any, str, bool]:
        versions = _versions(registry, name)
        chosen = versions[-1] if not given else whole_number(given, "the version", 1)
        found = registry.version(name, chosen)
        level, is_own = _level(registry, name)
        return versions, found, level, is_own

    versions, found, level, is_own = await _ask(visit, work)
    schema: Schema = found.schema
    at = versions.index(found.version) if found.version in versions else -1
    return {
        "title": name,
        "name": name,
        "versions": versions[-VERSIONS_MAX:],
        "shown": found.version,
        "before": versions[at - 1] if at > 0 else None,
        "id": found.id,
        "kind": schema.kind,
        "text": _pretty(schema),
        "references": [each._asdict() for each in schema.references],
        "level": level,
        "is_own_level": is_own,
        "levels": LEVELS,
        "kinds": KINDS,
    }


def _versions(registry: SchemaRegistry, name: str) -> list[int]:
    """The versions of a subject; of one that was deleted softly, all of them."""
    try:
        return registry.versions(name)
    except RegistryRefusedError as refused:
        if refused.status != _NOT_FOUND:
            raise
        return registry.versions(name, deleted=True)


def _level(registry: SchemaRegistry, name: str) -> tuple[str, bool]:
    """The compatibility level of a subject, and whether it is its own."""
    path = f"/config/{quote(name, safe='')}"
    try:
        return str(registry.call("GET", path)["compatibilityLevel"]), True
    except RegistryRefusedError as refused:
        if refused.status != _NOT_FOUND:
            raise
    return str(registry.call("GET", "/config")["compatibilityLevel"]), False


def _pretty(schema: Schema) -> str:
    if schema.kind == "PROTOBUF":
        return schema.text
    try:
        return json.dumps(json.loads(schema.text), indent=2, ensure_ascii=False)
    except ValueError:
        return schema.text


@page("/schemas/{subject}/diff", "schema_diff.html")
async def diff(visit: Visit) -> Data:
    """What differs between two versions; the newest and the one before, unless `from` and `to` name them."""
    name, query = visit.segments["subject"], visit.query

    def work(registry: SchemaRegistry) -> tuple[list[int], Any, Any]:
        versions = _versions(registry, name)
        new = whole_number(query["to"], "the version", 1) if query.get("to") else versions[-1]
        older = [each for each in versions if each < new] or [new]
        old = whole_number(query["from"], "the version", 1) if query.get("from") else older[-1]
        return versions, registry.version(name, old), registry.version(name, new)

    versions, old, new = await _ask(visit, work)
    lines = list(difflib.ndiff(_pretty(old.schema).splitlines(), _pretty(new.schema).splitlines()))
    kinds = {"+ ": "added", "- ": "removed", "  ": "same"}
    return {
        "title": f"{name}: {old.version} and {new.version}",
        "name": name,
        "versions": versions[-VERSIONS_MAX:],
        "old": old.version,
        "new": new.version,
        "lines": [{"kind": kinds[each[:2]], "text": each[2:]} for each in lines if each[:2] in kinds],
        "is_same": all(each.startswith("  ") for each in lines),
    }


def _candidate(given: Any) -> Schema:
    """The schema of a form or query."""
    text = needed(given, "schema", "the schema")
    kind = given.get("kind", "AVRO").upper()
    if kind not in KINDS:
        raise Refused(400, f"{kind!r} is no kind of schema: write {', '.join(KINDS)}")
    references = []
    for line in filter(None, map(str.strip, given.get("references", "").splitlines())):
        parts = line.split()
        if len(parts) != 3:
            raise Refused(400, f"{line!r} is no reference: write its name, subject and version, one reference a line")
        references.append(Reference(parts[0], parts[1], whole_number(parts[2], "the version", 1)))
    return Schema(text, kind, tuple(references))


@page("/schemas/{subject}/check", "schema_check.html")
async def check(visit: Visit) -> Data:
    """Whether a schema could be registered in a subject, and why not."""
    name, query = visit.segments["subject"], visit.query
    data: Data = {
        "title": f"Check a schema for {name}",
        "name": name,
        "kinds": KINDS,
        "kind": query.get("kind", "AVRO"),
        "schema": query.get("schema", ""),
        "references": query.get("references", ""),
        "reasons": None,
    }
    if query.get("schema", "").strip():
        candidate = _candidate(query)
        try:
            data["reasons"] = await _ask(visit, lambda registry: registry.check(name, candidate, None))
        except Refused as refused:
            if refused.status != _NOT_READABLE:
                raise
            data["reasons"] = [str(refused)]
    return data


@change("/schemas/register")
async def register_new(visit: Visit) -> tuple[str, str]:
    """Register a schema in the subject that the form names."""
    return await _register(visit, needed(visit.form, "subject", "the subject"))


@change("/schemas/{subject}/register")
async def register(visit: Visit) -> tuple[str, str]:
    """Register a schema."""
    return await _register(visit, visit.segments["subject"])


async def _register(visit: Visit, name: str) -> tuple[str, str]:
    candidate = _candidate(visit.form)
    found = await _change(visit, lambda registry: registry.register(name, candidate))
    return _path(name), f"{name} has this schema as version {found.version}, with the id {found.id}."


@change("/schemas/level")
async def set_global_level(visit: Visit) -> tuple[str, str]:
    """Set the compatibility level of all subjects without their own."""
    level = _wanted_level(visit)
    await _change(visit, lambda registry: registry.call("PUT", "/config", {"compatibility": level}))
    return "/schemas", f"The compatibility level of {GLOBAL} is {level}."


@change("/schemas/{subject}/level")
async def set_level(visit: Visit) -> tuple[str, str]:
    """Set the compatibility level of a subject, or with `reset` take it back."""
    name = visit.segments["subject"]
    where = f"/config/{quote(name, safe='')}"
    if visit.form.get("reset"):
        await _change(visit, lambda registry: registry.call("DELETE", where))
        return _path(name), f"{name} has the compatibility level of {GLOBAL} again."
    level = _wanted_level(visit)
    await _change(visit, lambda registry: registry.call("PUT", where, {"compatibility": level}))
    return _path(name), f"The compatibility level of {name} is {level}."


def _wanted_level(visit: Visit) -> str:
    level = visit.form.get("level", "").upper()
    if level not in LEVELS:
        raise Refused(400, f"{level!r} is no compatibility level: write {', '.join(LEVELS)}")
    return level


@change("/schemas/{subject}/delete")
async def delete(visit: Visit) -> tuple[str, str]:
    """Delete a subject or one of its versions, softly: readers still find the schema by its id."""
    name, version = visit.segments["subject"], visit.form.get("version", "").strip()
    where = f"/subjects/{quote(name, safe='')}"
    if version:
        number = whole_number(version, "the version", 1)
        await _change(visit, partial(_delete, f"{where}/versions/{number}"))
        return "/schemas", f"Version {number} of {name} was deleted. It is found by its id, and can be registered again."
    confirmed(visit, name, "the subject's name")
    await _change(visit, partial(_delete, where))
    return "/schemas", f"{name} was deleted. Its schemas are found by their ids, and can be registered again."


def _delete(where: str, registry: SchemaRegistry) -> None:
    registry.call("DELETE", where)
