"""The options of `ottla dump-log`, from its flags."""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.records.record import Record

MAX_BYTES_DEFAULT = 2**31 - 1

RecordDecoder = Callable[[Record], dict[str, object]]
"""Takes a record and returns the fields `key` and `payload`; either may be missing."""


@dataclass(frozen=True, slots=True)
class Options:
    """Kafka's flags. `decoder` is None if the content of records is not shown."""

    deep_iteration: bool = False
    decoder: RecordDecoder | None = None
    skip_record_metadata: bool = False
    max_bytes: int = MAX_BYTES_DEFAULT
    index_sanity_check: bool = False
    verify_index_only: bool = False
