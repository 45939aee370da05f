"""The options of `format("ottla")` that name a schema registry, for source and sink.

schema.registry.url                   http://localhost:8081, or several with commas
schema.registry.basic.auth.user.info  user:password
value.format, key.format              avro, json or protobuf
value.subject, key.subject            TOPIC-value and TOPIC-key if they are left out
value.message, key.message            of a .proto file: the message; its first one if it is left out
schema.evolution                      source: keep, fail or widen
bad.records                           source: fail or null
schema.register                       sink: register or latest
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.spark.errors import SparkOptionError

if TYPE_CHECKING:
    from ottla.schemas import SchemaRegistry
    from ottla.spark.options import Options

URL = "schema.registry.url"
USER_INFO = "schema.registry.basic.auth.user.info"
SIDES = ("key", "value")
COMMON = (URL, USER_INFO, *(f"{side}.{name}" for side in SIDES for name in ("format", "subject", "message")))
SOURCE_NAMES = (*COMMON, "schema.evolution", "bad.records")
SINK_NAMES = (*COMMON, "schema.register")
KINDS = {"avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF"}
KEEP, FAIL, WIDEN = EVOLUTIONS = ("keep", "fail", "widen")
BAD_FAIL, BAD_NULL = BAD = ("fail", "null")
REGISTER, LATEST = REGISTERS = ("register", "latest")


@dataclass(frozen=True)
class Address:
    """Where the registry is, and who asks."""

    url: str
    user_info: str | None = None

    def __repr__(self) -> str:
        return self.url.rpartition("@")[2]


@dataclass(frozen=True)
class SideOptions:
    """How the keys or values of a topic are written."""

    side: str
    """`key` or `value`."""
    kind: str
    """AVRO, JSON or PROTOBUF."""
    address: Address
    subject: str | None = None
    message: str | None = None

    @property
    def is_key(self) -> bool:
        return self.side == "key"

    def subject_of(self, topic: str) -> str:
        return self.subject or f"{topic}-{self.side}"


@dataclass(frozen=True)
class RegistryOptions:
    """What the options say of a registry."""

    sides: tuple[SideOptions, ...] = ()
    """Those that are not binary."""
    evolution: str = KEEP
    bad_records: str = BAD_FAIL
    register: str = REGISTER


NO_REGISTRY = RegistryOptions()


def registry_options(options: Options) -> RegistryOptions:
    """The options, or a `SparkOptionError` that names the one to change."""
    url, sides = options.get(URL), []
    for side in SIDES:
        form = options.get(f"{side}.format")
        if form is None:
            for name in options.given(f"{side}.subject", f"{side}.message"):
                raise SparkOptionError(f"{name} is used with {side}.format, which is not given: add {side}.format=avro, say")
        elif form.lower() not in KINDS:
            raise SparkOptionError(f"{side}.format is {form!r}: it must be {', '.join(KINDS)}. Leave it out for binary {side}s")
        elif url is None:
            raise SparkOptionError(
                f"{side}.format={form} takes the schema from a registry, and {URL} is not given: add it, such as "
                "http://localhost:8081"
            )
        else:
            if form.lower() != "protobuf" and options.get(f"{side}.message") is not None:
                raise SparkOptionError(f"{side}.message is for {side}.format=protobuf, not {form}")
            address = Address(url, options.get(USER_INFO))
            subject, message = options.get(f"{side}.subject"), options.get(f"{side}.message")
            sides.append(SideOptions(side, KINDS[form.lower()], address, subject, message))
    used = options.given("schema.evolution", "bad.records", "schema.register")
    if used and not sides:
        raise SparkOptionError(f"{used[0]} is used with value.format or key.format, of which none is given")
    for side_options in sides:
        client_of(side_options.address)  # a wrong address is refused now
    return RegistryOptions(
        tuple(sides),
        _one_of(options, "schema.evolution", EVOLUTIONS),
        _one_of(options, "bad.records", BAD),
        _one_of(options, "schema.register", REGISTERS),
    )


def _one_of(options: Options, name: str, known: tuple[str, ...]) -> str:
    text = (options.get(name) or known[0]).lower()
    if text not in known:
        raise SparkOptionError(f"{name} is {text!r}: it must be {', '.join(known[:-1])} or {known[-1]}")
    return text


_clients: dict[Address, SchemaRegistry] = {}


def client_of(address: Address) -> SchemaRegistry:
    """The client of a registry: one for each address and process, with all that it was told before."""
    found = _clients.get(address)
    if found is None:
        from ottla.errors import ArgumentError
        from ottla.schemas import SchemaRegistry

        login = None
        if address.user_info is not None:
            user, _, password = address.user_info.partition(":")
            login = (user, password)
        try:
            found = _clients[address] = SchemaRegistry(address.url, auth=login)
        except ArgumentError as problem:
            raise SparkOptionError(f"{URL}: {problem}") from None
    return found
