"""The contract for work that must not run on the event loop.

Blocking calls (fsync, rename) go to worker threads. CPU-bound work (compaction, recovery scans) goes to a helper process,
because a thread would hold the interpreter lock. The simulator runs both in place.

Expensive work for a request is written as `Steps`: a generator that says where others may run, and what may run elsewhere.

A helper's job is a module with `async def run_job(job, world) -> result`. The module never touches the operating system
itself: it is handed a `HelperWorld`, so the same job runs in a child process and in the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ottla.env.clock import Clock
from ottla.env.disk import Disk
from ottla.errors import OttlaError

if TYPE_CHECKING:
    from asyncio import Future

T = TypeVar("T")


Progress = Callable[[dict[str, object]], None]


class HelperDied(OttlaError):
    """A helper process ended without a result, for example because it was killed. Running the job again may succeed."""


class Workers(Protocol):
    """A small pool of threads for blocking calls."""

    async def run(self, call: Callable[[], T], /) -> T:
        """Run `call` off the loop and return what it returns, or raise what it raises.

        A call that has begun runs to its end even if the awaiting task is cancelled.
        """
        ...


class InlineWorkers:
    """Workers that run the call in place: for the simulator and for helper processes, where blocking the loop is harmless."""

    async def run(self, call: Callable[[], T], /) -> T:
        return call()


class OffLoop(NamedTuple):
    """A call to run in a worker thread: pure, and without the interpreter lock for most of its time."""

    call: Callable[[], Any]
    memory_bytes: int
    """How much memory the call and its result may hold."""


class Reserve(NamedTuple):
    """Wait until the node can spare so much memory; it is given back when the work ends. Once for each work."""

    memory_bytes: int
    is_for_request: bool = False
    """Whether a parsed request takes the memory, not what is made for it. That is given back when the request is answered."""
    is_of_follower: bool = False
    """Whether the request is a follower's fetch: those do not wait for clients' requests, which may wait for the follower."""


class Await(NamedTuple):
    """Wait for something that another task does. The work is sent what that returns, or thrown what it raises."""

    begin: Callable[[], Future[Any]]
    """Begins it, on the loop."""


Steps = Generator[OffLoop | Reserve | Await | None, Any, T]
"""Work in steps. It yields None where others may run, an `OffLoop`, and is sent what that returned or thrown what it raised, a
`Reserve` or an `Await`.

Whatever it has read may have changed after a `yield`. Closing the generator abandons the work.
"""


def run_to_end(steps: Steps[T]) -> T:
    """Do all of the work here and now; return its result."""
    value: Any = None
    failure: Exception | None = None
    while True:
        try:
            wanted = steps.send(value) if failure is None else steps.throw(failure)
        except StopIteration as end:
            result: T = end.value
            return result
        value, failure = None, None
        if isinstance(wanted, OffLoop):
            try:
                value = wanted.call()
            except Exception as caught:
                failure = caught


class HelperWorld(Protocol):
    """The parts of the world that a helper's job may use."""

    @property
    def disk(self) -> Disk: ...
    @property
    def clock(self) -> Clock: ...
    def progress(self, report: dict[str, object]) -> None:
        """Send a JSON object to the caller of `Helpers.run`, before the result."""
        ...

    async def pause(self, seconds: float) -> None:
        """Sleep, for jobs that throttle themselves."""
        ...


class Helpers(Protocol):
    """Child processes for CPU-bound work."""

    async def run(self, module: str, job: Mapping[str, object], on_progress: Progress | None = None) -> dict[str, object]:
        """Call `module`.run_job(job, world) in a child process and return its result; job and result are JSON objects.

        An `OSError` in the helper is raised here as an `OSError` with the same errno, any other error as `OttlaError` with
        the helper's own text. A helper that was killed raises `HelperDied`. The child ends when the call is cancelled or this
        process ends.
        """
        ...
