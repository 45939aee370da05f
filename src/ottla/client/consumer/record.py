"""`ConsumerRecord` with the types of its key and value: the kernel's class, which cannot be generic itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.type_parameters import K_co, V_co

    class ConsumerRecord(Generic[K_co, V_co]):
        """One record that a consumer got: where it lies, when it was written, its key, value and headers."""

        def __init__(
            self,
            topic: str,
            partition: int,
            offset: int,
            timestamp: int = -1,
            key: K_co | None = None,
            value: V_co | None = None,
            headers: Sequence[tuple[str, bytes | None]] = (),
            timestamp_type: int = 0,
            leader_epoch: int = -1,
        ) -> None: ...

        @property
        def topic(self) -> str: ...
        @property
        def partition(self) -> int: ...
        @property
        def offset(self) -> int: ...
        @property
        def timestamp(self) -> int: ...
        @property
        def timestamp_type(self) -> int: ...
        @property
        def leader_epoch(self) -> int: ...
        @property
        def key(self) -> K_co: ...
        @property
        def value(self) -> V_co: ...
        @property
        def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
        def header(self, key: str, default: bytes | None = None) -> bytes | None: ...
else:
    from ottla.records.kernels import ConsumerRecord

__all__ = ["ConsumerRecord"]
