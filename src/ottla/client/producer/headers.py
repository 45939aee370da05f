"""`PackedHeaders`: headers that several records have in common."""

from __future__ import annotations


class PackedHeaders(tuple[tuple[str, bytes | None], ...]):
    """Headers for several records: made into bytes once, when they are first sent."""

    packed: bytes | None = None
