"""`SchemaRegistry`: a client of Confluent's REST API, of Ottla's registry or any other.

Thread-safe: one connection, used in turn. What cannot change (a schema by its id, the id of a registered schema) is kept for
ever, the latest version of a subject for `latest_ttl_s`. When the registry is away, what is kept goes on working.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from ottla.errors import ArgumentError, ClientError, FatalError, RetriableError

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
TIMEOUT_S = 10.0
ATTEMPTS = 3
RETRY_S = 0.2


class RegistryUnavailableError(RetriableError):
    """The registry does not answer."""


class RegistryRefusedError(FatalError):
    """The registry refuses a request; `status` and `code` are its own."""

    def __init__(self, status: int, code: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.registry_code = code


class Reference(NamedTuple):
    """A schema that another one imports."""

    name: str
    subject: str
    version: int


class Schema(NamedTuple):
    """A schema's text, its type (`AVRO`, `JSON`, `PROTOBUF`), and what it references."""

    text: str
    kind: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None

    def as_body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"schema": self.text}
        if self.kind != "AVRO":
            body["schemaType"] = self.kind
        if self.references:
            body["references"] = [each._asdict() for each in self.references]
        if self.metadata:
            body["metadata"] = self.metadata
        if self.rule_set:
            body["ruleSet"] = self.rule_set
        return body

    def key(self) -> tuple[str, str, tuple[Reference, ...], str]:
        return self.text, self.kind, self.references, json.dumps([self.metadata, self.rule_set], sort_keys=True)


class RegisteredSchema(NamedTuple):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    guid: str
    schema: Schema


class SchemaRegistry:
    """A registry at one or more addresses: `SchemaRegistry("http://localhost:8081")`.

    `auth` is a user name and password, `token` a bearer token. For https, `ca` names a PEM file with the authorities to trust,
    `certificate` a PEM file with a certificate and key to show.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        auth: tuple[str, str] | None = None,
        token: str | None = None,
        ca: str | None = None,
        certificate: str | None = None,
        timeout_s: float = TIMEOUT_S,
        latest_ttl_s: float = 60.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.urls = [each.strip().rstrip("/") for each in (url.split(",") if isinstance(url, str) else url)]
        for each in self.urls:
            if urlsplit(each).scheme not in ("http", "https") or not urlsplit(each).hostname:
                raise ArgumentError(f"{each!r} is no address of a schema registry: write http://HOST:PORT")
        self._headers = {"Content-Type": CONTENT_TYPE, "Accept": CONTENT_TYPE, **(headers or {})}
        user = urlsplit(self.urls[0])
        if auth is None and user.username:
            auth = (user.username, user.password or "")
        if auth is not None:
            self._headers["Authorization"] = "Basic " + base64.b64encode(":".join(auth).encode()).decode()
        elif token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._ca, self._certificate = ca, certificate
        self._timeout_s = timeout_s
        self._latest_ttl_s = latest_ttl_s
        self._lock = threading.RLock()
        self._connection: http.client.HTTPConnection | None = None
        self._at = 0
        """Which of the addresses answers."""
        self._by_id: dict[tuple[str, int], Schema] = {}
        self._by_guid: dict[str, Schema] = {}
        self._registered: dict[Any, RegisteredSchema] = {}
        self._latest: dict[str, tuple[float, RegisteredSchema]] = {}
        self._versions: dict[tuple[str, int], RegisteredSchema] = {}

    def __repr__(self) -> str:
        return f"SchemaRegistry({', '.join(_without_login(each) for each in self.urls)})"

    def __getstate__(self) -> dict[str, Any]:
        """For Spark's workers: without the connection, which each process makes itself."""
        return {**self.__dict__, "_lock": None, "_connection": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def close(self) -> None:
        """End the connection. The client can be used again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    # Schemas

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Store a schema in a subject, if it is new there. Raises `RegistryRefusedError` if it is not compatible."""
        key = ("register", subject, schema.key(), normalize)
        if key not in self._registered:
            path = f"/subjects/{quote(subject, safe='')}/versions{'?normalize=true' if normalize else ''}"
            answer = self.call("POST", path, schema.as_body())
            if "version" not in answer:  # registries before Confluent's version 8 answer with the id alone
                answer = self.call("POST", f"/subjects/{quote(subject, safe='')}", schema.as_body()) | answer
            self._registered[key] = _registered(subject, answer, schema)
        return self._registered[key]

    def look_up(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The version of a subject that has this schema."""
        key = ("look_up", subject, schema.key(), normalize)
        if key not in self._registered:
            path = f"/subjects/{quote(subject, safe='')}{'?normalize=true' if normalize else ''}"
            self._registered[key] = _registered(subject, self.call("POST", path, schema.as_body()), schema)
        return self._registered[key]

    def latest(self, subject: str, *, fresh: bool = False) -> RegisteredSchema:
        """The newest version of a subject, at most `latest_ttl_s` old, or as it is now; older while the registry is away."""
        kept = self._latest.get(subject)
        if kept is not None and not fresh and time.monotonic() - kept[0] < self._latest_ttl_s:
            return kept[1]
        try:
            answer = self.call("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        except RegistryUnavailableError:
            if kept is None:
                raise
            return kept[1]
        found = _registered(subject, answer)
        self._latest[subject] = (time.monotonic(), found)
        return found

    def version(self, subject: str, version: int) -> RegisteredSchema:
        """One version of a subject."""
        if (subject, version) not in self._versions:
            answer = self.call("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}?deleted=true")
            self._versions[subject, version] = _registered(subject, answer)
        return self._versions[subject, version]

    def schema(self, schema_id: int, subject: str = "") -> Schema:
        """The schema that has an id; with `subject`, in the context of that."""
        context = subject.split(":")[1] if subject.startswith(":.") else ""
        if (context, schema_id) not in self._by_id:
            query = f"?subject={quote(subject, safe='')}" if context else ""
            self._by_id[context, schema_id] = _schema(self.call("GET", f"/schemas/ids/{schema_id}{query}"))
        return self._by_id[context, schema_id]

    def schema_of_guid(self, guid: str) -> Schema:
        """The schema that has a GUID."""
        if guid not in self._by_guid:
            self._by_guid[guid] = _schema(self.call("GET", f"/schemas/guids/{guid}"))
        return self._by_guid[guid]

    def imports(self, schema: Schema) -> list[tuple[str, Schema]]:
        """Everything that a schema references, directly or not, with the name it is imported by: the innermost first."""
        found: dict[str, Schema] = {}

        def collect(references: Sequence[Reference]) -> None:
            for name, subject, version in references:
                if name not in found:
                    imported = self.version(subject, version).schema
                    collect(imported.references)
                    found[name] = imported

        collect(schema.references)
        return list(found.items())

    # Subjects

    def subjects(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        """The subjects of all contexts, or those that begin with a prefix."""
        query = urlencode(({"subjectPrefix": prefix} if prefix else {}) | ({"deleted": "true"} if deleted else {}))
        found: list[str] = self.call("GET", f"/subjects{'?' if query else ''}{query}")
        return found

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        query = "?deleted=true" if deleted else ""
        found: list[int] = self.call("GET", f"/subjects/{quote(subject, safe='')}/versions{query}")
        return found

    def check(self, subject: str, schema: Schema, version: int | str | None = "latest") -> list[str]:
        """Why a schema is not compatible with a subject; empty if it is. `version=None`: as a registration would compare it."""
        which = "" if version is None else f"/{version}"
        path = f"/compatibility/subjects/{quote(subject, safe='')}/versions{which}?verbose=true"
        answer = self.call("POST", path, schema.as_body())
        return [] if answer["is_compatible"] else answer.get("messages") or ["the registry gives no reason"]

    # Requests

    def call(self, method: str, path: str, body: object = None) -> Any:
        """One request, and its answer as JSON. Tries again, at other addresses too, when the registry does not answer."""
        data = None if body is None else json.dumps(body).encode()
        failure = ""
        for attempt in range(max(ATTEMPTS, len(self.urls))):
            if attempt:
                time.sleep(RETRY_S * attempt)
            try:
                with self._lock:
                    status, answer = self._once(method, path, data)
            except (OSError, http.client.HTTPException) as problem:
                failure = str(problem) or type(problem).__name__
                self._next_address()
                continue
            if status in (502, 503, 504, 429):
                failure = f"HTTP {status}"
                self._next_address()
                continue
            return self._checked(method, path, status, answer)
        where = ", ".join(map(_without_login, self.urls))
        raise RegistryUnavailableError(
            f"the schema registry at {where} does not answer ({failure}): start it (ottla registry), or correct the address"
        )

    def _once(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        address = urlsplit(self.urls[self._at])
        was_open = self._connection is not None
        if self._connection is None:
            self._connection = self._connect(address)
        try:
            self._connection.request(method, address.path + path, data, self._headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            if not was_open:
                raise
        return self._once(method, path, data)  # the server had closed an idle connection: once more on a new one

    def _connect(self, address: Any) -> http.client.HTTPConnection:
        if address.scheme == "http":
            return http.client.HTTPConnection(address.hostname, address.port, timeout=self._timeout_s)
        context = ssl.create_default_context(cafile=self._ca)
        if self._certificate is not None:
            context.load_cert_chain(self._certificate)
        return http.client.HTTPSConnection(address.hostname, address.port, timeout=self._timeout_s, context=context)

    def _next_address(self) -> None:
        with self._lock:
            self.close()
            self._at = (self._at + 1) % len(self.urls)

    def _checked(self, method: str, path: str, status: int, data: bytes) -> Any:
        try:
            answer = json.loads(data) if data else None
        except ValueError:
            answer = None
        if status < 300:
            return answer
        where = _without_login(self.urls[self._at])
        if isinstance(answer, dict) and "message" in answer:
            raise RegistryRefusedError(status, int(answer.get("error_code") or status), f"{answer['message']} ({where})")
        if status in (401, 403):
            raise RegistryRefusedError(status, status, f"{where} refuses the login: give auth=(user, password) or token=…")
        raise RegistryRefusedError(
            status, status, f"{where} answers {method} {path} with HTTP {status}: is it a schema registry?"
        )


def _without_login(url: str) -> str:
    return url.replace(f"{urlsplit(url).netloc.rpartition('@')[0]}@", "") if "@" in url else url


def _schema(answer: Mapping[str, Any]) -> Schema:
    references = tuple(Reference(each["name"], each["subject"], each["version"]) for each in answer.get("references") or ())
    return Schema(
        answer["schema"], answer.get("schemaType") or "AVRO", references, answer.get("metadata"), answer.get("ruleSet")
    )


def _registered(subject: str, answer: Mapping[str, Any], schema: Schema | None = None) -> RegisteredSchema:
    schema = _schema(answer) if "schema" in answer else schema
    assert schema is not None
    return RegisteredSchema(
        answer.get("subject", subject), answer.get("version", 0), answer["id"], answer.get("guid") or "", schema
    )


def as_registry(given: SchemaRegistry | str) -> SchemaRegistry:
    """A client, or the one of an address."""
    return given if isinstance(given, SchemaRegistry) else SchemaRegistry(given)


__all__ = ["ClientError", "Reference", "RegisteredSchema", "Schema", "SchemaRegistry", "as_registry"]
