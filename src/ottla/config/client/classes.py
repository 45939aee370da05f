"""Serializers, deserializers, partitioners and assignors: Apache's class names and short names → ours, and Python paths.

A value is one of ours (a short name such as `str`), the path of a Python object (`package.module:Name` or
`package.module.Name`), or the object itself. `load` imports a path; nothing else here imports anything of the user's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.config.values import InvalidConfig
from ottla.errors import ConfigError
from ottla.errors.texts import near_words

_SERIALIZATION = "org.apache.kafka.common.serialization."
_JAVA_PACKAGES = ("org.", "com.", "io.", "net.", "java.", "javax.")
"""How Java class names begin. A Python module below such a package can still be named, as `module:Name`."""

SERIALIZERS = ("bytes", "str", "json", "int16", "int32", "int64", "float32", "float64", "bool", "uuid", "void")
"""The serializers and deserializers that Ottla brings, by their short names."""

_SERIALIZER_OF_JAVA = {
    "Boolean": "bool",
    "ByteArray": "bytes",
    "ByteBuffer": "bytes",
    "Bytes": "bytes",
    "Double": "float64",
    "Float": "float32",
    "Integer": "int32",
    "Long": "int64",
    "Short": "int16",
    "String": "str",
    "UUID": "uuid",
    "Void": "void",
}
_OTHER_SPELLINGS = {
    "string": "str",
    "short": "int16",
    "integer": "int32",
    "int": "int64",
    "long": "int64",
    "float": "float64",
    "double": "float64",
    "boolean": "bool",
    "none": "void",
}
"""Words that people try. Python's int and float have 64 bits in Kafka; `integer` is Kafka's word for 32 bits."""

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The assignors that Ottla brings, by the names that they have in the group protocol."""

_ASSIGNOR_OF_JAVA = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
    "round-robin": "roundrobin",
    "cooperative_sticky": "cooperative-sticky",
    "cooperativesticky": "cooperative-sticky",
}

PARTITIONERS = ("default", "roundrobin")
"""The partitioners that Ottla brings. `default` hashes keys as Kafka does, and spreads records without a key adaptively."""

_PRODUCER_CLASSES = "org.apache.kafka.clients.producer."
_PARTITIONER_OF_JAVA = {
    f"{_PRODUCER_CLASSES}internals.DefaultPartitioner": "default",
    f"{_PRODUCER_CLASSES}internals.BuiltInPartitioner": "default",
    f"{_PRODUCER_CLASSES}RoundRobinPartitioner": "roundrobin",
    "murmur2_random": "default",
    "round-robin": "roundrobin",
}
_RETIRED_PARTITIONERS = {
    f"{_PRODUCER_CLASSES}UniformStickyPartitioner": (
        "Kafka 4 has dropped it. Remove the setting and set partitioner.ignore.keys=true: records are then spread without "
        "looking at their keys, as it did"
    ),
}


LOGIN_HANDLERS = ("oauth", "aws-msk-iam", "azure", "google")
"""Where tokens for OAUTHBEARER come from, by short names: an endpoint or a file as settings say, and three clouds."""

_LOGIN_HANDLER_OF_JAVA = {
    "OAuthBearerLoginCallbackHandler": "oauth",
    "IAMOAuthBearerLoginCallbackHandler": "aws-msk-iam",
    "GcpLoginCallbackHandler": "google",
}
"""By the name without its package, which Databricks and others change."""


class PythonPath(NamedTuple):
    """The path of a Python object that `load` imports: `module` and the name in it, dotted for nested ones."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


Implementation = Any
"""One of ours by its short name (str), a `PythonPath`, or an object of the user's."""


def serializer(setting: str, value: object) -> Implementation:
    """A serializer or deserializer, as `setting` names it."""
    if not isinstance(value, str):
        return value
    text = _class_name(value)
    if text.startswith(_SERIALIZATION):
        stem = text.removeprefix(_SERIALIZATION).removesuffix("Serializer").removesuffix("Deserializer")
        if (ours := _SERIALIZER_OF_JAVA.get(stem)) is not None:
            if text.endswith("Deserializer") != setting.endswith(".deserializer"):
                raise InvalidConfig(setting, f"{setting}={value}: it takes a {setting.rpartition('.')[2]}; write {ours}")
            return ours
    ours = _OTHER_SPELLINGS.get(text.lower(), text.lower())
    return ours if ours in SERIALIZERS else _python_path(setting, text, SERIALIZERS)


def partitioner(setting: str, value: object) -> Implementation:
    """A partitioner, as `setting` names it."""
    if value is None or value == "":
        return "default"
    if not isinstance(value, str):
        return value
    text = _class_name(value)
    if text in _RETIRED_PARTITIONERS:
        raise InvalidConfig(setting, f"{setting}={value}: {_RETIRED_PARTITIONERS[text]}")
    ours = _PARTITIONER_OF_JAVA.get(text, text.lower())
    return ours if ours in PARTITIONERS else _python_path(setting, text, PARTITIONERS)


def assignor(setting: str, value: object) -> Implementation:
    """One assignor of a list, as `setting` names it."""
    if not isinstance(value, str):
        return value
    text = _class_name(value)
    ours = _ASSIGNOR_OF_JAVA.get(text, _ASSIGNOR_OF_JAVA.get(text.lower(), text.lower()))
    return ours if ours in ASSIGNORS else _python_path(setting, text, ASSIGNORS)


def interceptor(setting: str, value: object) -> Implementation:
    """One interceptor of a list, as `setting` names it."""
    return _python_path(setting, _class_name(value), ()) if isinstance(value, str) else value


def login_handler(setting: str, value: object) -> Implementation:
    """What fetches tokens, as `setting` names it."""
    if not isinstance(value, str):
        return value
    text = _class_name(value)
    ours = _LOGIN_HANDLER_OF_JAVA.get(text.rpartition(".")[2], text.lower().replace("_", "-"))
    return ours if ours in LOGIN_HANDLERS else _python_path(setting, text, LOGIN_HANDLERS)


def load(setting: str, implementation: Implementation) -> Implementation:
    """The object behind a `PythonPath`; everything else as it is. `ConfigError` says what could not be imported, and why."""
    if not isinstance(implementation, PythonPath):
        return implementation
    import importlib  # late: few clients name a Python path

    try:
        found: Any = importlib.import_module(implementation.module)
    except Exception as error:  # a module may raise anything while it is imported
        raise ConfigError(
            f"{setting}={implementation}: cannot import {implementation.module} ({type(error).__name__}: {error}): install it, "
            "or correct the path, which is package.module:Name. Java classes cannot be loaded",
            setting=setting,
        ) from error
    for part in implementation.name.split("."):
        if not hasattr(found, part):
            near = near_words(part, dir(found))
            hint = f"; did you mean {near[0]}?" if near else f": give the name of an object in {implementation.module}"
            raise ConfigError(f"{setting}={implementation}: {implementation.module} has no {part}{hint}", setting=setting)
        found = getattr(found, part)
    return found


def _class_name(text: str) -> str:
    """The name in `class org.example.Name`, as Kafka's logs show it, or in the name alone."""
    return text.strip().removeprefix("class ").strip()


def _python_path(setting: str, text: str, ours: tuple[str, ...]) -> PythonPath:
    """The path in `text`, or the refusal of what is neither a path nor one of `ours`."""
    module, colon, name = text.partition(":")
    if not colon:
        module, _, name = text.rpartition(".")
        if text.startswith(_JAVA_PACKAGES):
            raise InvalidConfig(
                setting,
                f"{setting}={text} is a Java class, which Python cannot load: {_use(ours)}pass a Python object, or give the "
                "path of one as package.module:Name",
            )
    if not module or not all(part.isidentifier() for part in f"{module}.{name}".split(".")):
        near = near_words(text.lower(), ours)
        hint = f"did you mean {near[0]}? Otherwise " if near else ""
        raise InvalidConfig(
            setting,
            f"{setting}={text!r}: {hint}{_use(ours)}give a Python object, or the path of one as package.module:Name",
        )
    return PythonPath(module, name)


def _use(ours: tuple[str, ...]) -> str:
    return f"use one of {', '.join(ours)}, " if ours else ""
