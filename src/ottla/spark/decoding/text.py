"""Strings and UUIDs as Kafka's serializers write them: UTF-8 text. Evaluated in the JVM."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

UUID_PATTERN = "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"


class TextDecoder:
    """UTF-8 text to string."""

    def __init__(self, side: str) -> None:
        self._side = side

    def stage(self, source: Any) -> Any:
        """The bytes as a string, which may not be valid."""
        return source.cast("string")

    def value(self, staged: Any, source: Any) -> Any:
        """The string."""
        return staged

    def reason(self, staged: Any, source: Any) -> Any:
        """Bytes that are no UTF-8."""
        return F.when(~F.is_valid_utf8(staged), F.lit(f"the {self._side} is not valid UTF-8"))

    def unknown_fields(self, staged: Any, source: Any) -> Any:
        """There are no fields."""
        return None

    def fields(self, staged: Any) -> dict[str, Any]:
        """There are no fields."""
        return {}


class UuidDecoder(TextDecoder):
    """The 36 characters of a UUID to string, in lower case."""

    def value(self, staged: Any, source: Any) -> Any:
        """The UUID's text."""
        return F.lower(staged)

    def reason(self, staged: Any, source: Any) -> Any:
        """Text that is no UUID."""
        shown = F.left(F.make_valid_utf8(staged), F.lit(40))
        return F.when(~staged.rlike(UUID_PATTERN), F.concat(F.lit(f"the {self._side} is no UUID: "), shown))


class BytesDecoder:
    """Bytes as they are."""

    def __init__(self, side: str) -> None:
        self._side = side

    def stage(self, source: Any) -> Any:
        """The bytes."""
        return source

    def value(self, staged: Any, source: Any) -> Any:
        """The bytes."""
        return staged

    def reason(self, staged: Any, source: Any) -> Any:
        """There is no bad record."""
        return F.lit(None).cast("string")

    def unknown_fields(self, staged: Any, source: Any) -> Any:
        """There are no fields."""
        return None

    def fields(self, staged: Any) -> dict[str, Any]:
        """There are no fields."""
        return {}
