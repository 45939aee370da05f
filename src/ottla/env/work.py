"""Work that must not run on the event loop: the contract.

Waiting (fsync, rename) goes to worker threads; burning CPU (compaction, recovery scans) goes to a helper process, because a
thread would hold the interpreter lock. The simulator runs both in place.

A helper's job is a module with `async def run_job(job, world) -> result`. The module never touches the operating system by
itself: it is handed a `HelperWorld`, so that the same job runs in a child process and in the simulator.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from ottla.env.clock import Clock
from ottla.env.disk import Disk
from ottla.errors import OttlaError

T = TypeVar("T")


Progress = Callable[[dict[str, object]], None]


class HelperDied(OttlaError):
    """A helper process ended without a word, killed perhaps: its job may go well another time."""


class Workers(Protocol):
    """A few threads for calls that wait."""

    async def run(self, call: Callable[[], T], /) -> T:
        """Run `call` off the loop and return what it returns, or raise what it raises.

        A call that has begun runs to its end even if the waiter is cancelled.
        """
        ...


class InlineWorkers:
    """Workers that run the call at once, in place: for the simulator and for helper processes, where nobody waits."""

    async def run(self, call: Callable[[], T], /) -> T:
        return call()


class HelperWorld(Protocol):
    """What a job in a helper sees of the world."""

    @property
    def disk(self) -> Disk: ...
    @property
    def clock(self) -> Clock: ...
    def progress(self, report: dict[str, object]) -> None:
        """Send a JSON object to whoever waits for this job, before the result."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait, as a throttled job does."""
        ...


class Helpers(Protocol):
    """Child processes for calls that burn CPU."""

    async def run(self, module: str, job: Mapping[str, object], on_progress: Progress | None = None) -> dict[str, object]:
        """Call `module`.run_job(job, world) in a child process and return its result; job and result are JSON objects.

        An `OSError` in the helper is raised here as an `OSError` with the same errno, any other error as `OttlaError` with
        the helper's own words; a helper that was killed is `HelperDied`. Cancelling ends the child; so does the end of this
        process.
        """
        ...
