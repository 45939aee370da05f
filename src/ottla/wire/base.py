"""The base classes of all messages: equality, `repr`, and the names that generated modules use.

Owns no encoding. A message is a plain object with one attribute per field of any version; the version it is encoded in
decides which are written. `unknown_tags` holds tagged fields that are not in the schema, such as those of a newer peer, as
(tag, bytes), so that encoding the message again loses nothing.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from ottla.errors import OttlaError

if TYPE_CHECKING:
    from ottla.env import FileRange

Records: TypeAlias = "bytes | bytearray | memoryview | FileRange"
"""What may fill a `records` field. Decoding always gives a memoryview of the input."""

Bytes: TypeAlias = bytes | bytearray | memoryview
"""What may fill a `bytes` field that decodes to a view."""

Part: TypeAlias = "bytes | bytearray | memoryview | FileRange"
"""An element of the list that encoders return. Adjacent bytes are one part; records are a part of their own, not copied."""

EMPTY: Final[Any] = ()
"""The default of list arguments: it makes a new list, and leaves None free to mean null."""

NEW: Final[Any] = object()
"""The default of struct arguments that are not null by default: it makes a new struct."""


SECRETS: Final = frozenset({"auth_bytes", "hmac", "salted_password", "server_key", "stored_key"})
"""Fields whose values `repr` does not show."""


class EncodeError(OttlaError):
    """A message cannot be written in a version: a value out of range, a null where none may be, a text too long.

    `path` names the offending field from the message down, such as `ProduceRequest.topic_data[0].name`.
    """

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = path


class UnsupportedVersion(EncodeError):
    """The message does not have the version, or the version lacks a field that is set and is not ignorable."""


class Struct:
    """The base of every generated class."""

    __slots__ = ("unknown_tags",)
    __hash__ = None  # type: ignore[assignment]  # mutable, and equal by value

    unknown_tags: list[tuple[int, bytes]] | None

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self.unknown_tags == getattr(other, "unknown_tags", None) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __repr__(self) -> str:
        fields = [f"{name}={'hidden' if name in SECRETS else repr(getattr(self, name))}" for name in self.__slots__]
        if self.unknown_tags:
            fields.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{self.__class__.__name__}({', '.join(fields)})"


class Message(Struct):
    """A request, response or record: a struct that is encoded on its own.

    `SCHEMA` is its part of the schema table, `STRUCTS` the classes of its structs, in order of appearance. `KEY` is the API key
    of a request or response, or the type of a record; messages that have neither have -1.
    """

    __slots__ = ()

    KEY: ClassVar[int] = -1
    SCHEMA: ClassVar[str]
    STRUCTS: ClassVar[tuple[type[Struct], ...]]
