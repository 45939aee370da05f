"""One record, as read from a batch or to be put into one. The class itself lives with the kernel that makes millions of it."""

from ottla.records.kernels import Record

Headers = tuple[tuple[str, bytes | None], ...]

__all__ = ["Headers", "Record"]
