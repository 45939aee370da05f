"""How the faces of a producer and a consumer are made of one description: the functions in a `calls.py`.

A function there is one public method: its signature, its docstring and what it does, as a coroutine over `self`, a face. What
has to happen on the event loop goes through a few steps that each face defines. The asyncio face awaits them. In the
synchronous face they block the calling thread, so that a coroutine runs from beginning to end in that thread, without a loop:
`finished` returns its result. Serializers, listeners and what users pass as iterables so run in the caller's thread or task.

Nothing here imports asyncio: importing `ottla.Producer` must stay cheap.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar, cast

from ottla.client.other_clients import FaceType, explain_others, own_names
from ottla.errors import IllegalStateError
from ottla.errors.texts import counted

if TYPE_CHECKING:
    import asyncio

    from ottla.client.metrics import ClientMetrics
    from ottla.client.prometheus import PrometheusCollector

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
M = TypeVar("M", bound=Callable[..., Any])

Described = Callable[Concatenate[S, P], Coroutine[Any, Any, R]]


def finished(coroutine: Coroutine[Any, Any, R]) -> R:
    """The result of a coroutine of a synchronous face: it never suspends, because all that it awaits blocks."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast(R, end.value)
    coroutine.close()
    raise RuntimeError(f"{coroutine!r} of a synchronous client has suspended: this is a bug of Ottla")


def method_of(described: Callable[..., Any], method: M) -> M:
    """Give a face's method the name, signature and docstring of what it was made of. `self` is shown without a type."""
    described.__annotations__.pop("self", None)
    functools.update_wrapper(method, described)
    return method


def blocking(described: Described[S, P, R]) -> Callable[Concatenate[S, P], R]:
    """A method of a synchronous face: it blocks the calling thread until the call is done."""

    def method(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return finished(described(self, *args, **kwargs))

    return method_of(described, method)


def blocking_steps(described: Callable[Concatenate[S, P], AsyncIterator[R]]) -> Callable[Concatenate[S, P], Iterator[R]]:
    """A generator of a synchronous face, made of an asynchronous one. What is raised at a `yield` is raised there too."""
    described.__annotations__.pop("return", None)  # an AsyncIterator, in help() of this face

    def method(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        steps = cast("AsyncGenerator[R, None]", described(self, *args, **kwargs))
        step = steps.__anext__()
        try:
            while True:
                try:
                    item = finished(step)
                except StopAsyncIteration:
                    return
                try:
                    yield item
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step = steps.athrow(error)
                else:
                    step = steps.__anext__()
        finally:
            finished(steps.aclose())

    return method_of(described, method)


def plain(described: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that is no coroutine in either face, as it is."""
    described.__annotations__.pop("self", None)
    return described


# `check_loop`: an asyncio client belongs to the event loop that it was first used on. Its connections and timers are there.


def check_loop(own: asyncio.AbstractEventLoop | None, client: str) -> None:
    """Raise if the caller runs on another loop than the one that `client` belongs to (None: to no loop yet).

    Calls that only change the client may come between two runs of its loop, when none runs.
    """
    import asyncio  # only asyncio clients come here; see above

    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        return
    if own is None or running is own:
        return
    state = ", which is closed" if own.is_closed() else ""
    raise IllegalStateError(
        f"this {client} is used on another event loop: it belongs to the loop that it was first used on{state}. Make one for "
        "each loop"
    )


# `MeasuredFace`: what all faces of clients have: their metrics, which work from any thread, and no pickling or copying.


class MeasuredFace(metaclass=FaceType):
    """The base class of the faces: it reads the metrics of their core."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        explain_others(cls)

    @property
    def _measured(self) -> ClientMetrics:
        raise NotImplementedError

    def metrics(self) -> dict[str, dict[str, float]]:
        """The values of Kafka's metrics by group and name: `metrics()["producer-metrics"]["record-send-total"]`."""
        return self._measured.as_dict()

    def prometheus_text(self) -> str:
        """The metrics in Prometheus's text format."""
        return self._measured.prometheus_text()

    def prometheus_collector(self) -> PrometheusCollector:
        """The metrics for the `prometheus_client` library: `REGISTRY.register(producer.prometheus_collector())`."""
        from ottla.client.prometheus import PrometheusCollector

        return PrometheusCollector(self._measured.registry, self._measured.now_ms)

    def __dir__(self) -> list[str]:
        return own_names(super().__dir__(), type(self))

    def __reduce__(self) -> NoReturn:
        """Refuse `pickle` and `copy`: Spark and multiprocessing would meet a lock or a socket deep inside."""
        name = type(self).__name__
        raise TypeError(
            f"{name} objects cannot be pickled or copied: connections belong to one process. Make one where it is used"
        )


# Clients that are garbage collected, or left over at the end of the process, without `close`: they say so.
#
# A face registers one of these functions with `weakref.finalize`. They get parts of the client, never the face, and may run
# in any thread.

ADVICE = "Call close(), or use `with`"


def producer_dropped(logger: logging.Logger, unsent: int) -> None:
    """Say that a producer is gone. Records that it had not sent are lost, which is an error."""
    if unsent:
        verb = "is" if unsent == 1 else "are"
        logger.error(
            "a producer was dropped without close(): %s that it had not sent %s lost. Call close() or flush(), or use `with`",
            counted(unsent, "record"),
            verb,
        )
    warnings.warn(f"a producer was dropped without close(). {ADVICE}", ResourceWarning, stacklevel=2)


def consumer_dropped(logger: logging.Logger, group_id: str | None) -> None:
    """Say that a consumer is gone. `group_id`: the group that it is still a member of."""
    if group_id is not None:
        logger.warning(
            "a consumer of group %s was dropped without close(): its last offsets are not committed, and its partitions are "
            "not read until the group misses it. %s",
            group_id,
            ADVICE,
        )
    warnings.warn(f"a consumer was dropped without close(). {ADVICE}", ResourceWarning, stacklevel=2)


def admin_dropped() -> None:
    """Say that an Admin is gone. Nothing is lost with it."""
    warnings.warn(f"an Admin was dropped without close(). {ADVICE}", ResourceWarning, stacklevel=2)


def on_loop(loop: asyncio.AbstractEventLoop, close: Callable[[], object]) -> None:
    """End what a dropped client has left on an application's event loop, if that still runs."""
    try:
        loop.call_soon_threadsafe(close)
    except RuntimeError:
        pass  # the loop is closed, and with it all that belonged to it
