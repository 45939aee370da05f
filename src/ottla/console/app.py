"""The console's ASGI application: who may do what, and how handlers' data become pages or JSON.

Everything that comes from clusters is hostile: templates escape it, and the Content-Security-Policy allows no inline scripts
and nothing from elsewhere. Requests must name a known Host (a page elsewhere cannot reach the console by another name),
changes need the console's Origin and the token of the session.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from ottla import __version__
from ottla.asgi import Routes
from ottla.console import masking
from ottla.console.access import Access, Everybody, LoginRefused, User
from ottla.console.audit import Audit
from ottla.console.clusters import ClusterView, Kept, NotAnswering
from ottla.console.formats import Reader, Schemas
from ottla.console.masking import Masking
from ottla.console.sql import Jobs
from ottla.errors import ArgumentError, KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.schemas.client import SchemaRegistry

logger = logging.getLogger("ottla.console")

STATIC = Path(__file__).parent / "static"
STATIC_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
SESSION = "ottla_session"
STATUSES: Mapping[int, int] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: 403,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: 403,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 403,
}
"""The answers to a cluster's errors, where they are not 502."""
FORM_BYTES_MAX = 8 * 1024 * 1024
UNREAD_FORM_BYTES_MAX = 8 * FORM_BYTES_MAX
"""A larger form is read to here, and dropped: a connection that closes while a browser still sends shows no answer."""
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

Data = dict[str, Any]
Handler = Callable[["Visit"], Awaitable[Any]]


class Refused(OttlaError):
    """A request that is not answered: the status and why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Page(NamedTuple):
    """A handler and the template that shows its data; changes have none."""

    handler: Handler
    template: str
    is_change: bool
    permission: str = "change"
    """What a change needs: to change the cluster, or to run SQL."""


class Result(NamedTuple):
    """What a change shows instead of leading to another page: for what must not stand in an address, such as a new secret."""

    template: str
    data: Data
    text: str
    """For the log and the audit topic."""


PAGES: Routes[Page] = Routes()


def page(path: str, template: str) -> Callable[[Handler], Handler]:
    """A page that shows data. The same path below /api gives the data as JSON."""

    def add(handler: Handler) -> Handler:
        PAGES.add("GET", path, Page(handler, template, False))
        return handler

    return add


def change(path: str, permission: str = "change") -> Callable[[Handler], Handler]:
    """A change, by POST. Its handler returns the path to go to, (path, what was done), or a `Result`."""

    def add(handler: Handler) -> Handler:
        PAGES.add("POST", path, Page(handler, "", True, permission))
        return handler

    return add


class ConsoleSettings(NamedTuple):
    """How the console was started."""

    hosts: frozenset[str]
    """The names by which it may be called, without port; empty: any."""
    allows_changes: bool = False
    registry_url: str | None = None
    """The schema registry of clusters that have none of their own."""
    registries: Mapping[str, str] = {}
    """Schema registries by cluster."""
    read_only: frozenset[str] = frozenset()
    """Clusters that are never changed."""
    access: Access = Everybody()
    masking: Masking = Masking()
    audit_topic: str | None = None
    runs_sql: bool = False
    properties: Mapping[str, Mapping[str, str]] = {}
    """The client settings of clusters by Kafka's names, for SQL's processes."""
    pipelines: tuple[str, ...] = ()
    """Addresses of the metrics of pipelines' runs."""


class Visit:
    """One request: the cluster it is about, its path's segments, its query and form."""

    def __init__(self, console: Console, request: Request, view: ClusterView, segments: Mapping[str, str]) -> None:
        self.console = console
        self.request = request
        self.view = view
        self.segments = segments
        self.user = User()
        self._query: Mapping[str, str] | None = None
        self.form: dict[str, str] = {}
        self.fields: list[tuple[str, str]] = []
        """The form's fields in order, with repeated names."""

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params if self._query is None else self._query

    def take_query(self, query: Mapping[str, str]) -> None:
        """For a change whose form says what a query would."""
        self._query = query

    @property
    def settings(self) -> ConsoleSettings:
        return self.console.settings

    @property
    def base(self) -> str:
        """What paths begin with: empty for the first cluster."""
        first = next(iter(self.console.views))
        return "" if self.view.name == first else f"/clusters/{quote(self.view.name, safe='')}"

    @property
    def allows_changes(self) -> bool:
        """Whether this user may change things in this cluster."""
        return self.settings.allows_changes and self.user.is_editor and self.view.name not in self.settings.read_only

    @property
    def registry_url(self) -> str | None:
        """The schema registry of the cluster."""
        return self.settings.registries.get(self.view.name, self.settings.registry_url)

    def number(self, name: str, default: int, lowest: int = 0, highest: int = 1_000_000) -> int:
        try:
            return min(max(int(self.query.get(name, default)), lowest), highest)
        except ValueError:
            return default

    def with_query(self, **changes: object) -> str:
        """The same page with other query parameters; None takes one away."""
        merged = {**self.query, **changes}
        return "?" + urlencode({name: each for name, each in merged.items() if each is not None})

    def with_forms(self) -> str:
        """The forms that the query chose for keys and values, for links to records."""
        chosen = {name: self.query[name] for name in ("key", "value") if self.query.get(name, "auto") != "auto"}
        return f"?{urlencode(chosen)}" if chosen else ""


class Console:
    """The ASGI application."""

    def __init__(self, views: Mapping[str, ClusterView], settings: ConsoleSettings) -> None:
        from ottla.console import pages

        pages.load()
        self.views = views
        self.settings = settings
        self.jobs = Jobs()
        self.runs: dict[str, Kept[Data]] = {}
        """What runs of pipelines have told, by address."""
        self.registries: dict[str, SchemaRegistry] = {}
        """Clients of schema registries, by address."""
        self.audit = Audit(next(iter(views.values())), settings.audit_topic)
        self._secret = secrets.token_bytes(32)
        self._templates = Environment(
            loader=PackageLoader("ottla.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        from ottla.console import text

        self._templates.filters.update(text.FILTERS)
        self._schemas: dict[str, Schemas] = {}
        self._static: dict[str, tuple[bytes, str, str]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        response = await self._respond(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        path = request.scope["raw_path"].decode("latin-1")
        wants_json = path.startswith("/api/") or path == "/api"
        visit = None
        try:
            self._check_host(request)
            if path.startswith("/static/"):
                return self._file(path, request)
            user = await self.settings.access.user(request, is_api=wants_json)
            if isinstance(user, Response):
                return user
            visit, found = await self._visit(request, path.removeprefix("/api") if wants_json else path)
            visit.user = user
            masking.begin(self.settings.masking, partial(self._read, visit.registry_url))
            if found.is_change:
                return await self._change(visit, found, wants_json)
            data = await found.handler(visit)
            if isinstance(data, Response):
                return data
            return _json(data) if wants_json else self._render(visit, found.template, data)
        except (Refused, LoginRefused) as refused:
            return self._failure(request, visit, refused.status, str(refused), wants_json)
        except NotAnswering as silent:
            name = visit.view.name if visit is not None else ""
            return self._failure(request, visit, 503, f"{name} does not answer: {silent}", wants_json)
        except TimeoutError:
            name = visit.view.name if visit is not None else ""
            return self._failure(request, visit, 503, f"{name} does not answer in time", wants_json)
        except ArgumentError as mistake:
            return self._failure(request, visit, 400, str(mistake), wants_json)
        except (KafkaError, OttlaError) as error:
            status = STATUSES.get(getattr(error, "code", 0), 502)
            return self._failure(request, visit, status, str(error), wants_json)
        except Exception:
            logger.exception("%s %s failed", request.method, request.url.path)
            return self._failure(request, visit, 500, "something went wrong: see the console's log", wants_json)

    def _read(self, registry_url: str | None, topic: str, record: Any, part: str) -> tuple[Any, bool]:
        """What a key or value is, for masking."""
        found = Reader(topic, schemas=self.schemas(registry_url)).read(record, part)
        return found.value, found.is_parsed

    async def _visit(self, request: Request, path: str) -> tuple[Visit, Page]:
        views = self.views
        view = next(iter(views.values()))
        if path.startswith("/clusters/"):
            from urllib.parse import unquote

            name, _, rest = path.removeprefix("/clusters/").partition("/")
            if unquote(name) not in views:
                raise Refused(404, f"there is no cluster {unquote(name)!r}: the console shows {', '.join(views)}")
            view, path = views[unquote(name)], f"/{rest}"
        match, allowed = PAGES.find(request.method, path)
        if match is None:
            raise Refused(405 if allowed else 404, "this page takes no such request" if allowed else f"there is no page {path}")
        return Visit(self, request, view, match.segments), match.handler

    def _check_host(self, request: Request) -> None:
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        if self.settings.hosts and host.strip("[]").lower() not in self.settings.hosts:
            raise Refused(421, f"the console does not go by the name {host!r}: start it with --allowed-host {host}")

    # Changes

    async def _change(self, visit: Visit, found: Page, wants_json: bool) -> Response:
        is_allowed = self.settings.runs_sql if found.permission == "sql" else self.settings.allows_changes
        if not is_allowed:
            raise Refused(403, "this console only shows: start it with --allow-changes to change things")
        if not visit.user.is_editor:
            raise Refused(
                403, f"{visit.user.name} may only look: the groups that may change things are set in the configuration"
            )
        if found.permission == "change" and not visit.allows_changes:
            raise Refused(403, f"the cluster {visit.view.name} is only shown: its configuration says read-only")
        await self._read_form(visit)
        origin = visit.request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != visit.request.headers.get("host"):
            raise Refused(403, f"a page of {origin} may not change things here")
        if not hmac.compare_digest(visit.form.pop("csrf", ""), self.token(visit.request)):
            raise Refused(403, "the form is too old: load the page again and repeat what you did")
        recorded = await self.audit.asked(visit)
        try:
            done = await found.handler(visit)
        except Exception as error:
            await self.audit.ended(visit, recorded, str(error) or type(error).__name__, is_done=False)
            raise
        finally:
            visit.view.forget()
        if isinstance(done, Result):
            path, text = "", done.text
        else:
            path, text = done if isinstance(done, tuple) else ("" if isinstance(done, Response) else done, "")
        await self.audit.ended(visit, recorded, text, is_done=True)
        logger.info("%s by %s: %s", visit.request.url.path, visit.user.name or "somebody", text)
        if isinstance(done, Response):
            return done
        if wants_json:
            return _json({"done": text, **(done.data if isinstance(done, Result) else {})})
        if isinstance(done, Result):
            return self._render(visit, done.template, done.data)
        query = f"{'&' if '?' in path else '?'}{urlencode({'done': text})}" if text else ""
        return RedirectResponse(visit.base + path + query, 303)

    async def _read_form(self, visit: Visit) -> None:
        data = bytearray()
        size = 0
        async for chunk in visit.request.stream():
            size += len(chunk)
            if size <= FORM_BYTES_MAX:
                data += chunk
            elif size > UNREAD_FORM_BYTES_MAX:
                break
        if size > FORM_BYTES_MAX:
            raise Refused(413, f"the form has more than {FORM_BYTES_MAX:,} bytes")
        kind = visit.request.headers.get("content-type", "")
        if kind.startswith("multipart/form-data"):
            visit.fields = _multipart(bytes(data), kind.partition("boundary=")[2].strip('"'))
            visit.form = dict(visit.fields)
        elif kind.startswith("application/json"):
            visit.fields = _json_fields(bytes(data))
            visit.form = dict(visit.fields)
            visit.form.setdefault("csrf", visit.request.headers.get("x-csrf-token", ""))
        else:
            visit.fields = parse_qsl(data.decode("utf-8", "replace"), keep_blank_values=True)
            visit.form = dict(visit.fields)

    def token(self, request: Request) -> str:
        """What a form must send back: derived from the session's cookie."""
        session = request.cookies.get(SESSION, "")
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest() if session else ""

    # Answers

    def schemas(self, url: str | None) -> Schemas | None:
        """What reads keys and values that were written with schemas of a registry."""
        if url is None:
            return None
        if url not in self._schemas:
            self._schemas[url] = Schemas(url)
        return self._schemas[url]

    def fragment(self, template: str, visit: Visit, **data: Any) -> str:
        """A part of a page, for streams."""
        return self._templates.get_template(template).render(**data, visit=visit, base=visit.base)

    def _render(self, visit: Visit, template: str, data: Data, status: int = 200) -> Response:
        session = visit.request.cookies.get(SESSION) or secrets.token_urlsafe(24)
        token = hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()
        shown = self._templates.get_template(template).render(
            **data,
            visit=visit,
            base=visit.base,
            clusters=list(self.views),
            cluster=visit.view.name,
            path=visit.request.url.path,
            csrf=token,
            allows_changes=visit.allows_changes,
            user=visit.user,
            registry=visit.registry_url,
            done=visit.query.get("done", ""),
            version=__version__,
        )
        response = Response(shown, status, media_type="text/html")
        if SESSION not in visit.request.cookies:
            response.set_cookie(SESSION, session, httponly=True, samesite="strict")
        return response

    def _failure(self, request: Request, visit: Visit | None, status: int, text: str, wants_json: bool) -> Response:
        if wants_json:
            return _json({"error": text}, status)
        if visit is None:
            visit = Visit(self, request, next(iter(self.views.values())), {})
        shown = {"title": "Not possible", "text": text, "status": status, "back": self._back(request)}
        return self._render(visit, "failure.html", shown, status)

    def _back(self, request: Request) -> str:
        """Where to try again: this page, or the one whose form was sent."""
        if request.method in ("GET", "HEAD"):
            return request.url.path + (f"?{request.url.query}" if request.url.query else "")
        scheme, _, place = request.headers.get("referer", "").partition("://")
        host, slash, path = place.partition("/")
        return slash + path.lstrip("/") if scheme and host == request.headers.get("host") else "/"

    def _file(self, path: str, request: Request) -> Response:
        name = path.removeprefix("/static/")
        if name not in self._static:
            file = STATIC / name
            if "/" in name or name.startswith(".") or file.suffix not in STATIC_TYPES or not file.is_file():
                raise Refused(404, f"there is no file {name}")
            data = file.read_bytes()
            self._static[name] = data, STATIC_TYPES[file.suffix], f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        data, kind, tag = self._static[name]
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=kind, headers=headers)


def _multipart(data: bytes, boundary: str) -> list[tuple[str, str]]:
    """The fields of a form with files. Bytes that are no UTF-8 become surrogates, which nothing writes again."""
    found = []
    for part in data.split(b"--" + boundary.encode("latin-1"))[1:-1] if boundary else []:
        head, _, body = part.partition(b"\r\n\r\n")
        if name := re.search(rb'[; ]name="([^"]*)"', head):
            found.append((name[1].decode("utf-8", "replace"), body.removesuffix(b"\r\n").decode("utf-8", "surrogateescape")))
    return found


def _json_fields(data: bytes) -> list[tuple[str, str]]:
    """The fields of a JSON object as a form has them: lists are repeated fields, false and null are empty."""
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refused(400, "the body must be one JSON object")
    fields = []
    for name, each in body.items():
        for one in each if isinstance(each, list) else [each]:
            value = one if isinstance(one, str) else "" if one in (None, False) else "1" if one is True else json.dumps(one)
            fields.append((str(name), value))
    return fields


def _json(data: Any, status: int = 200) -> Response:
    return JSONResponse(json.loads(json.dumps(data, default=str)), status)
