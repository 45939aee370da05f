"""Work that must not run on the event loop: the contract.

Waiting (fsync, rename) goes to worker threads; burning CPU (compaction, recovery scans) goes to a helper process, because a
thread would hold the interpreter lock. The simulator runs both in place.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

T = TypeVar("T")


class Workers(Protocol):
    """A few threads for calls that wait."""

    async def run(self, call: Callable[[], T], /) -> T:
        """Run `call` off the loop and return what it returns, or raise what it raises."""
        ...


class Helpers(Protocol):
    """Child processes for calls that burn CPU."""

    async def run(self, module: str, job: Mapping[str, object]) -> dict[str, object]:
        """Run `python -m module` with `job` as its input and return its result; both are JSON objects.

        An error in the helper is raised here as `OttlaError` with the helper's own words. Cancelling ends the child.
        """
        ...
