"""The types of keys and values: `K` and `V`, by which the clients are generic, and what users give to say which they are.

`K` and `V` are Any unless known, so that a type checker takes `def run(producer: Producer)`. `Producer("localhost:9092")` is a
`Producer[bytes, bytes]`, and serializers say otherwise: see the overloads of `Producer.__init__`. Type checkers know defaults
(PEP 696) from typing_extensions, which they bring along; Python itself has them since 3.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal, Protocol
    from uuid import UUID

    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
    K_co = TypeVar("K_co", default=Any, covariant=True)
    V_co = TypeVar("V_co", default=Any, covariant=True)
    K_own = TypeVar("K_own")
    V_own = TypeVar("V_own")
    T = TypeVar("T")
    T_co = TypeVar("T_co", covariant=True)
    T_contra = TypeVar("T_contra", contravariant=True)

    Servers = str | Sequence[str | tuple[str, int]]
    """`host:port`, several of them in one text or in a list."""

    _Headers = Sequence[tuple[str, bytes | None]]

    class Serializer(Protocol[T_contra]):
        """An object of the user's that turns values into bytes, as Confluent's and Kafka's serializers do."""

        def serialize(self, topic: str, headers: _Headers, value: T_contra, /) -> bytes | None: ...

    class SerializerOfTopic(Protocol[T_contra]):
        """A serializer that does not look at headers."""

        def serialize(self, topic: str, value: T_contra, /) -> bytes | None: ...

    class Deserializer(Protocol[T_co]):
        """An object of the user's that turns bytes into values."""

        def deserialize(self, topic: str, headers: _Headers, data: bytes, /) -> T_co: ...

    class DeserializerOfTopic(Protocol[T_co]):
        """A deserializer that does not look at headers."""

        def deserialize(self, topic: str, data: bytes, /) -> T_co: ...

    AsBytes = Literal["bytes"] | type[bytes] | None
    AsText = Literal["str", "string"] | type[str]
    AsNamed = str | type[int] | type[float] | type[UUID]
    """Another of the forms by name, or the path of a Python object: of values that a type checker does not know."""
    Serializing = (
        Callable[[T], bytes | None]
        | Callable[[str, T], bytes | None]
        | Serializer[T]
        | SerializerOfTopic[T]
        | type[Serializer[T]]
        | type[SerializerOfTopic[T]]
    )
    """What a user brings to turn a T into bytes."""
    Deserializing = (
        Callable[[bytes], T]
        | Callable[[str, bytes], T]
        | Deserializer[T]
        | DeserializerOfTopic[T]
        | type[Deserializer[T]]
        | type[DeserializerOfTopic[T]]
    )
    """What a user brings to turn bytes into a T."""
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")
    K_co = TypeVar("K_co", covariant=True)
    V_co = TypeVar("V_co", covariant=True)
