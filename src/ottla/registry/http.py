"""The REST API: Confluent's paths, codes and bodies, as an ASGI application.

Routes are matched on the raw path, because subjects with a slash arrive percent-encoded. Below `/contexts/CTX` every path
works on that context. Answers leave out empty fields.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from ottla import __version__
from ottla.asgi import Routes
from ottla.errors import KafkaError
from ottla.registry import decisions, errors
from ottla.registry.decisions import Registration, parse_registration
from ottla.registry.errors import RegistryError
from ottla.registry.group import Address, RegistryGroup
from ottla.registry.records import Stored
from ottla.registry.service import Registry
from ottla.registry.state import DEFAULT_CONTEXT, GLOBAL, RegistryState, context_of, qualified
from ottla.schemas.languages import MODULES

logger = logging.getLogger("ottla.registry")

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
BODY_BYTES_MAX = 4 * 1024 * 1024
LIMIT = 1_000
FORWARD_S = 40.0
"""Longer than the leader takes for a write (`service.py`)."""
FORWARDED = ("Content-Type", "Accept", "Authorization", "X-Request-ID")

Handler = Callable[["Call"], Awaitable[Any]]
_ROUTES: Routes[Handler] = Routes()
route = _ROUTES.on


class Call:
    """One request: its path's segments, query and body, and the context it is about."""

    def __init__(self, registry: Registry, request: Request, segments: dict[str, str], context: str) -> None:
        self.registry = registry
        self.request = request
        self.context = context
        self._segments = segments

    @property
    def state(self) -> RegistryState:
        return self.registry.state

    def segment(self, name: str) -> str:
        return self._segments[name]

    @property
    def subject(self) -> str:
        """The subject of the path, with its context."""
        return qualified(self.context, self.segment("subject"))

    @property
    def readable_subject(self) -> str:
        """The subject of the path, or the one that it is an alias of."""
        subject = self.subject
        alias = (self.state.config(subject) or {}).get("alias")
        return qualified(self.context, alias) if alias else subject

    def flag(self, name: str, default: bool = False) -> bool:
        given = self.request.query_params.get(name)
        return default if given is None else given.lower() == "true"

    def optional_flag(self, name: str) -> bool | None:
        return self.flag(name) if name in self.request.query_params else None

    def number(self, name: str, default: int) -> int:
        given = self.request.query_params.get(name)
        try:
            return default if given is None else int(given)
        except ValueError:
            raise RegistryError(422, 422, f"the query parameter {name}={given} is not a whole number") from None

    def text(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def page(self, found: list[Any]) -> list[Any]:
        """The part of a list that `offset` and `limit` ask for; no limit below 0, the default."""
        offset, limit = max(0, self.number("offset", 0)), self.number("limit", -1)
        return found[offset:] if limit < 0 else found[offset : offset + limit]

    async def body(self) -> object:
        """The body as JSON."""
        data = await _whole_body(self.request)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as problem:
            raise RegistryError(400, 400, f"the body is not JSON: {problem}") from None

    async def registration(self) -> Registration:
        return parse_registration(await self.body())

    async def shown(self, stored: Stored) -> dict[str, Any]:
        """A schema object, its text in the form that the query asks for."""
        return stored.as_json() | {"schema": await self.registry.text(stored.subject, stored.content, self.text("format"))}

    def stored(self, *, deleted: bool) -> Stored:
        """The version that the path names."""
        subject, given = self.readable_subject, self.segment("version")
        if not self.state.has_subject(subject, deleted=True):
            raise errors.subject_not_found(subject)
        if given in ("latest", "-1"):
            versions = self.state.versions(subject, deleted=deleted)
            if not versions:
                raise errors.subject_not_found(subject)
            return versions[-1]
        number = version_number(given)
        found = self.state.version(subject, number)
        if found is None or (found.is_deleted and not deleted):
            raise errors.version_not_found(number)
        return found


def version_number(given: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", given) or not 1 <= int(given) <= decisions.VERSION_MAX:
        raise errors.invalid_version(given)
    return int(given)


def _schema_id(call: Call) -> int:
    given = call.segment("id")
    if not re.fullmatch(r"[0-9]{1,10}", given):
        raise RegistryError(404, 404, f"HTTP 404 Not Found: {given} is no schema id")
    return int(given)


class RegistryApp:
    """The ASGI application."""

    def __init__(self, registry: Registry, group: RegistryGroup | None = None) -> None:
        self.registry = registry
        self._group = group

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        try:
            found = await self._answer(request)
        except RegistryError as error:
            return _json({"error_code": error.code, "message": error.text}, error.status)
        except KafkaError as error:
            return _json({"error_code": 50001, "message": f"the cluster does not answer: {error}"}, 500)
        except Exception:
            logger.exception("%s %s failed", request.method, request.url.path)
            return _json({"error_code": 500, "message": "Internal Server Error: see the registry's log"}, 500)
        return found if isinstance(found, Response) else _json(found)

    async def _answer(self, request: Request) -> Any:
        path = request.scope["raw_path"].decode("latin-1")
        context = DEFAULT_CONTEXT
        if below := re.fullmatch(r"/contexts/([^/]+)(/.+)", path):
            context, path = _context(unquote(below[1])), below[2]
        match, allowed = _ROUTES.find(request.method, path)
        if match is not None and self._group is not None and not self._group.is_leader and _is_write(request.method, path):
            return await _forwarded(request, self._group)
        if match is not None:
            return await match.handler(Call(self.registry, request, match.segments, context))
        if allowed:
            raise RegistryError(405, 405, f"HTTP 405 Method Not Allowed: {path} takes {', '.join(allowed)}")
        raise RegistryError(404, 404, f"HTTP 404 Not Found: there is no {path}")


# Beside registries of Confluent


def _is_write(method: str, path: str) -> bool:
    return method in ("PUT", "DELETE") or (method == "POST" and re.fullmatch(r"/subjects/[^/]+/versions/?", path) is not None)


async def _forwarded(request: Request, group: RegistryGroup) -> Response:
    """What the leader of the group answers to a write."""
    if group.leader is None:
        raise RegistryError(500, 50004, "No leader: the registries' group elects one, try again in a moment")
    if request.headers.get("X-Forward") == "true":
        raise RegistryError(500, 50004, f"this registry does not lead its group: {group.leader.url} does")
    data = await _whole_body(request)
    path = request.scope["raw_path"].decode("latin-1")
    target = f"{path}?{request.url.query}" if request.url.query else path
    headers = {name: request.headers[name] for name in FORWARDED if name in request.headers}
    try:
        status, kind, answer = await asyncio.to_thread(_ask, group.leader, request.method, target, data, headers)
    except (OSError, HTTPException) as problem:
        text = f"Error while forwarding the request to the leader {group.leader.url}: {problem or type(problem).__name__}"
        raise RegistryError(500, 50003, text) from None
    return Response(answer, status, media_type=kind)


def _ask(leader: Address, method: str, target: str, data: bytes, headers: dict[str, str]) -> tuple[int, str, bytes]:
    kind = HTTPSConnection if leader.scheme == "https" else HTTPConnection
    connection = kind(leader.host, leader.port, timeout=FORWARD_S)
    try:
        connection.request(method, target, data, {**headers, "X-Forward": "true"})
        response = connection.getresponse()
        return response.status, response.headers.get("Content-Type", CONTENT_TYPE), response.read()
    finally:
        connection.close()


async def _whole_body(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_BYTES_MAX:
            raise RegistryError(413, 42209, f"Schema too large: the body has more than {BODY_BYTES_MAX:,} bytes")
    return bytes(data)


def _context(given: str) -> str:
    name = given.strip(":")
    return name if name.startswith(".") else f".{name}"


def _json(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value, separators=(",", ":")), status, media_type=CONTENT_TYPE)


# Liveness and what this is


@route("GET", "/")
async def root(call: Call) -> Any:
    return {}


@route("POST", "/")
async def post_root(call: Call) -> Any:
    return {}


@route("GET", "/v1/metadata/version")
async def version(call: Call) -> Any:
    return {"version": f"ottla-{__version__}", "commitId": ""}


@route("GET", "/v1/metadata/id")
async def cluster_id(call: Call) -> Any:
    return {"scope": {"path": [], "clusters": {"kafka-cluster": "", "schema-registry-cluster": "schema-registry"}}, "id": ""}


@route("GET", "/v1/metadata/deployment")
async def deployment(call: Call) -> Any:
    return {"attributes": []}


# Schemas by id


@route("GET", "/schemas/types")
async def types(call: Call) -> Any:
    return list(MODULES)


@route("GET", "/schemas")
async def schemas(call: Call) -> Any:
    deleted, latest = call.flag("deleted"), call.flag("latestOnly")
    found: list[Any] = []
    for subject in _matching(call, call.text("subjectPrefix", ":*:")):
        versions = call.state.versions(subject, deleted=deleted)
        found += [each.as_json() for each in (versions[-1:] if latest else versions)]
    limit = call.number("limit", LIMIT)
    return call.page(found)[: LIMIT if limit < 0 else limit]


def _uses(call: Call) -> list[Stored]:
    """The versions with the id of the path, looked up in the context of `subject` if that is given."""
    schema_id, subject = _schema_id(call), call.text("subject")
    context = context_of(qualified(call.context, subject)) if subject else call.context
    found = call.state.uses(context, schema_id)
    if subject and not subject.endswith(":"):
        of_subject = [each for each in found if each.subject == qualified(call.context, subject)]
        found = of_subject or found
    if not found and context == DEFAULT_CONTEXT and not subject:
        for other in call.state.contexts():
            if found := call.state.uses(other, schema_id):
                break
    if not found:
        raise errors.schema_not_found(f"{schema_id} ")
    return found


@route("GET", "/schemas/ids/{id}")
async def by_id(call: Call) -> Any:
    stored = _uses(call)[0]
    shown = await call.shown(stored)
    for field in ("id", "version", "deleted"):
        shown.pop(field, None)
    if not call.text("subject"):
        shown.pop("subject")
    if call.flag("fetchMaxId"):
        shown["maxId"] = call.state.max_ids.get(context_of(stored.subject), 0)
    return shown


@route("GET", "/schemas/ids/{id}/schema")
async def text_by_id(call: Call) -> Any:
    stored = _uses(call)[0]
    return PlainTextResponse((await call.shown(stored))["schema"], media_type=CONTENT_TYPE)


def _visible(call: Call) -> list[Stored]:
    deleted, subject = call.flag("deleted"), call.text("subject")
    name = qualified(call.context, subject) if subject else ""
    return [each for each in _uses(call) if (deleted or not each.is_deleted) and (not name or each.subject == name)]


@route("GET", "/schemas/ids/{id}/subjects")
async def subjects_of_id(call: Call) -> Any:
    return call.page(sorted({each.subject for each in _visible(call)}))


@route("GET", "/schemas/ids/{id}/versions")
async def versions_of_id(call: Call) -> Any:
    return call.page([{"subject": each.subject, "version": each.version} for each in _visible(call)])


@route("GET", "/schemas/guids/{guid}")
async def by_guid(call: Call) -> Any:
    content = call.state.content_of_guid(call.segment("guid"))
    if content is None:
        raise errors.schema_not_found(f"{call.segment('guid')} ")
    shown = Stored("", 0, 0, content).as_json()
    return {name: value for name, value in shown.items() if name not in ("subject", "version", "id")}


@route("GET", "/schemas/guids/{guid}/ids")
async def ids_of_guid(call: Call) -> Any:
    found = call.state.ids_of_guid(call.segment("guid"))
    if not found:
        raise errors.schema_not_found(f"{call.segment('guid')} ")
    return [{"context": context, "id": schema_id} for context, schema_id in found]


# Subjects


def _matching(call: Call, prefix: str) -> list[str]:
    """The subjects with a prefix; `:*:` at its begin means every context."""
    if prefix.startswith(":*:"):
        rest = prefix[3:]
        return [each for each in call.state.subjects() if _name(each).startswith(rest)]
    prefix = qualified(call.context, prefix)
    if context_of(prefix) == DEFAULT_CONTEXT:
        return [
            each
            for each in call.state.subjects()
            if context_of(each) == DEFAULT_CONTEXT and each.startswith(prefix.removeprefix(":.:"))
        ]
    return [each for each in call.state.subjects() if each.startswith(prefix)]


def _name(subject: str) -> str:
    return subject.split(":", 2)[2] if subject.startswith(":.") else subject


@route("GET", "/subjects")
async def subjects(call: Call) -> Any:
    default = ":*:" if call.context == DEFAULT_CONTEXT else ""
    found = _matching(call, call.text("subjectPrefix", default))
    if call.flag("deletedOnly"):
        found = [each for each in found if not call.state.has_subject(each)]
    elif not call.flag("deleted"):
        found = [each for each in found if call.state.has_subject(each)]
    return call.page(found)


@route("POST", "/subjects/{subject}")
async def look_up(call: Call) -> Any:
    wanted = await call.registration()
    normalize, deleted = call.optional_flag("normalize"), call.flag("deleted")
    found = await call.registry.look_up(call.readable_subject, wanted, normalize=normalize, deleted=deleted)
    return await call.shown(found)


@route("DELETE", "/subjects/{subject}")
async def delete_subject(call: Call) -> Any:
    subject, permanent = call.subject, call.flag("permanent")
    return await call.registry.write(lambda state: decisions.delete_subject(state, subject, is_permanent=permanent))


@route("GET", "/subjects/{subject}/metadata")
async def by_metadata(call: Call) -> Any:
    subject = call.readable_subject
    query = call.request.query_params
    wanted = dict(zip(query.getlist("key"), query.getlist("value"), strict=False))
    if not call.state.has_subject(subject, deleted=True):
        raise errors.subject_not_found(subject)
    for each in reversed(call.state.versions(subject, deleted=call.flag("deleted"))):
        metadata = json.loads(each.content.metadata) if each.content.metadata else {}
        if wanted.items() <= (metadata.get("properties") or {}).items():
            return each.as_json()
    raise errors.schema_not_found()


@route("GET", "/subjects/{subject}/versions")
async def versions(call: Call) -> Any:
    subject = call.readable_subject
    every, alive = call.state.versions(subject, deleted=True), call.state.versions(subject)
    shown = every if call.flag("deleted") or call.flag("deletedOnly") or call.flag("deletedAsNegative") else alive
    if not shown:
        raise errors.subject_not_found(subject)
    if call.flag("deletedOnly"):
        shown = [each for each in every if each.is_deleted]
    if call.flag("deletedAsNegative"):
        return call.page([-each.version if each.is_deleted else each.version for each in shown])
    return call.page([each.version for each in shown])


@route("POST", "/subjects/{subject}/versions")
async def register(call: Call) -> Any:
    wanted = await call.registration()
    return await call.registry.register(call.subject, wanted, normalize=call.optional_flag("normalize"))


@route("GET", "/subjects/{subject}/versions/{version}")
async def by_version(call: Call) -> Any:
    return await call.shown(call.stored(deleted=call.flag("deleted")))


@route("DELETE", "/subjects/{subject}/versions/{version}")
async def delete_version(call: Call) -> Any:
    permanent, given = call.flag("permanent"), call.segment("version")
    number = call.stored(deleted=given != "latest" or permanent).version
    subject = call.subject

    def decide(state: RegistryState) -> decisions.Decision:
        found = state.version(subject, number)
        if found is None:
            raise errors.version_not_found(number)
        return decisions.delete_version(state, found, is_permanent=permanent)

    return await call.registry.write(decide)


@route("GET", "/subjects/{subject}/versions/{version}/schema")
async def text_of_version(call: Call) -> Any:
    stored = call.stored(deleted=call.flag("deleted"))
    return PlainTextResponse((await call.shown(stored))["schema"], media_type=CONTENT_TYPE)


@route("GET", "/subjects/{subject}/versions/{version}/referencedby")
@route("GET", "/subjects/{subject}/versions/{version}/referencedBy")
async def referenced_by(call: Call) -> Any:
    stored = call.stored(deleted=True)
    users = call.state.referrers(stored.subject, stored.version, deleted=call.flag("deleted"))
    return call.page(sorted({each.id for each in users}))


# Compatibility


@route("POST", "/compatibility/subjects/{subject}/versions/{version}")
async def check_version(call: Call) -> Any:
    subject, given = call.readable_subject, call.segment("version")
    if given in ("latest", "-1"):
        stored = call.state.latest(subject)
    else:
        stored = call.state.version(subject, version_number(given))
        if stored is None or stored.is_deleted:
            missing = errors.version_not_found(given) if call.state.has_subject(subject) else errors.subject_not_found(subject)
            raise missing
    return await _check(call, subject, [] if stored is None else [stored])


@route("POST", "/compatibility/subjects/{subject}/versions")
async def check_subject(call: Call) -> Any:
    return await _check(call, call.readable_subject, None)


async def _check(call: Call, subject: str, versions: list[Stored] | None) -> Any:
    wanted = await call.registration()
    content = await call.registry.content(subject, wanted, normalize=call.optional_flag("normalize"), inherits=True)
    level = call.state.effective_config(subject)["compatibilityLevel"]
    if versions is None:
        level, versions = decisions.to_compare(call.state, subject, content)
    messages: list[str] = []
    for each in versions:
        messages = await call.registry.differences(subject, level, content, each)
        if messages:
            messages.append(f"{{compatibility: '{level}'}}")
            break
    answer: dict[str, Any] = {"is_compatible": not messages}
    if call.flag("verbose"):
        answer["messages"] = messages
    return answer


# Settings and modes


@route("GET", "/config")
async def global_config(call: Call) -> Any:
    return call.state.effective_config(_scope(call))


@route("PUT", "/config")
async def set_global_config(call: Call) -> Any:
    body, scope = await call.body(), _scope(call)
    return await call.registry.write(lambda state: decisions.set_config(state, scope, body))


@route("DELETE", "/config")
async def delete_global_config(call: Call) -> Any:
    scope = _scope(call)
    return await call.registry.write(lambda state: decisions.delete_config(state, scope))


@route("GET", "/config/{subject}")
async def config(call: Call) -> Any:
    own = call.state.config(call.subject)
    if call.flag("defaultToGlobal"):
        return call.state.effective_config(call.subject)
    if own is None:
        raise errors.config_not_found(call.subject)
    return own


@route("PUT", "/config/{subject}")
async def set_config(call: Call) -> Any:
    body, subject = await call.body(), call.subject
    return await call.registry.write(lambda state: decisions.set_config(state, subject, body))


@route("DELETE", "/config/{subject}")
async def delete_config(call: Call) -> Any:
    subject = call.subject
    return await call.registry.write(lambda state: decisions.delete_config(state, subject))


@route("GET", "/mode")
async def global_mode(call: Call) -> Any:
    return {"mode": call.state.effective_mode(_scope(call))}


@route("PUT", "/mode")
async def set_global_mode(call: Call) -> Any:
    body, scope, forced = await call.body(), _scope(call), call.flag("force")
    return await call.registry.write(lambda state: decisions.set_mode(state, scope, body, is_forced=forced))


@route("DELETE", "/mode")
async def delete_global_mode(call: Call) -> Any:
    scope, recursive = _scope(call), call.flag("recursive")
    return await call.registry.write(lambda state: decisions.delete_mode(state, scope, is_recursive=recursive))


@route("GET", "/mode/{subject}")
async def mode(call: Call) -> Any:
    own = call.state.mode(call.subject)
    if call.flag("defaultToGlobal"):
        own = call.state.effective_mode(call.subject)
    if own is None:
        raise errors.mode_not_found(call.subject)
    return {"mode": own}


@route("PUT", "/mode/{subject}")
async def set_mode(call: Call) -> Any:
    body, subject, forced = await call.body(), call.subject, call.flag("force")
    return await call.registry.write(lambda state: decisions.set_mode(state, subject, body, is_forced=forced))


@route("DELETE", "/mode/{subject}")
async def delete_mode(call: Call) -> Any:
    subject, recursive = call.subject, call.flag("recursive")
    return await call.registry.write(lambda state: decisions.delete_mode(state, subject, is_recursive=recursive))


def _scope(call: Call) -> str:
    """What a path without a subject is about: the registry, or the context."""
    return GLOBAL if call.context == DEFAULT_CONTEXT else f":{call.context}:"


# Contexts


@route("GET", "/contexts")
async def contexts(call: Call) -> Any:
    return call.page([each for each in call.state.contexts() if each.startswith(call.text("contextPrefix"))])


@route("DELETE", "/contexts/{name}")
async def delete_context(call: Call) -> Any:
    context = _context(call.segment("name"))
    await call.registry.write(lambda state: decisions.delete_context(state, context))
    return Response(status_code=204)
