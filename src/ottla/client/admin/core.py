"""`AdminCore`: what the two faces of the Admin client share: the cluster, opened at the first call, and each call's time limit.

A face has one line for each function in this folder: `create_topics = awaiting(topics.create_topics)`. The decorator takes the
function's cluster away and keeps the rest of its signature (a `ParamSpec`), its type hints and its docstring. So the faces
cannot differ from the functions or from each other.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ottla.client.cluster import Cluster, open_cluster
from ottla.client.faces import check_loop
from ottla.client.link_options import check_security
from ottla.client.metrics import ClientMetrics
from ottla.client.runtime import ClientRuntime
from ottla.client.world import ClientWorld
from ottla.config.client.settings import AdminSettings
from ottla.errors import IllegalStateError, KafkaError, TimeoutError

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=Callable[..., Any])
logger = logging.getLogger("ottla.admin")

Function = Callable[Concatenate[Cluster, P], Coroutine[Any, Any, R]]


class AdminCore:
    """The state of one Admin client. Everything but the constructor runs on one event loop."""

    def __init__(self, settings: AdminSettings, world: ClientWorld) -> None:
        for notice in settings.notices:
            logger.warning("%s", notice)
        check_security(settings, world)
        self.settings = settings
        self.world = world
        self.metrics = ClientMetrics("admin-client", settings, world)
        self._cluster: Cluster | None = None
        self._runner: ClientRuntime | None = None
        """Runs the telemetry; None until a broker was asked something."""
        self.is_closed = False
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop that its connections are on; None before the first call."""

    async def run(
        self, function: Callable[..., Coroutine[Any, Any, R]], args: Any, kwargs: Any, timeout_s: float | None = None
    ) -> R:
        """Call one of the Admin's functions with the cluster."""
        cluster = self._open()
        try:
            async with asyncio.timeout(timeout_s):
                found = await function(cluster, *args, **kwargs)
                self._start_telemetry()
                return found
        except BaseException as error:
            if self.is_closed and isinstance(error, KafkaError):
                raise IllegalStateError(f"this Admin was closed during {function.__name__}: make a new one") from None
            if type(error) is asyncio.TimeoutError:
                raise TimeoutError(f"{function.__name__} did not end within {timeout_s} s (with_timeout)") from None
            raise

    def _open(self) -> Cluster:
        if self.is_closed:
            raise IllegalStateError("this Admin is closed: make a new one")
        if self._cluster is None:
            self.loop = asyncio.get_running_loop()
            self._cluster = open_cluster(self.world, self.settings, "ottla-admin", self.metrics)
        else:
            check_loop(self.loop, "Admin")
        return self._cluster

    def _start_telemetry(self) -> None:
        """After the first call: pushes use its connection. Controllers take none."""
        if (
            self._runner is None
            and self._cluster is not None
            and self.settings.enable_metrics_push
            and self.settings.bootstrap_servers
            and not self.is_closed
        ):
            self._runner = ClientRuntime([], self._cluster.pool, self.world.clock, self._after_round)
            self.metrics.after_round(self._runner, is_connected=True)

    def _after_round(self) -> None:
        if self._runner is not None:
            self.metrics.after_round(self._runner, is_connected=True)

    async def close(self) -> None:
        """End all connections. Calls that are under way fail."""
        check_loop(self.loop, "Admin")
        self.is_closed = True
        if self._runner is not None:
            await self.metrics.close(self._runner)
        self.abandon()

    def abandon(self) -> None:
        """End all connections at once: the client was dropped."""
        self.is_closed = True
        if self._runner is not None:
            self._runner.close()
        if self._cluster is not None:
            self._cluster.close()


def checked_timeout(seconds: object) -> float:
    """The argument of `with_timeout`, if it is a time."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise ValueError(f"seconds is {seconds!r}, but must be a positive number")
    return seconds


class AwaitingFace(Protocol):
    """A face whose methods are awaited."""

    _core: AdminCore
    _timeout_s: float | None


class BlockingFace(Protocol):
    """A face whose methods block the calling thread."""

    _timeout_s: float | None

    def _call(self, start: Callable[[], Coroutine[Any, Any, R]]) -> R: ...

    _core: AdminCore


def awaiting(function: Function[P, R]) -> Callable[Concatenate[AwaitingFace, P], Coroutine[Any, Any, R]]:
    """A method that awaits `function` with the client's cluster."""

    @functools.wraps(function)
    async def method(self: AwaitingFace, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._core.run(function, args, kwargs, self._timeout_s)

    return _signed(method, function)


def blocking(function: Function[P, R]) -> Callable[Concatenate[BlockingFace, P], R]:
    """A method that runs `function` in the client's thread, and waits for it."""

    @functools.wraps(function)
    def method(self: BlockingFace, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._call(lambda: self._core.run(function, args, kwargs, self._timeout_s))

    return _signed(method, function)


def _signed(method: M, function: Callable[..., Any]) -> M:
    """Give the method the signature that a caller sees: `self` in place of the cluster."""
    signature = inspect.signature(function)
    first, *rest = signature.parameters.values()
    shown: Any = method
    shown.__signature__ = signature.replace(parameters=[first.replace(name="self", annotation=first.empty), *rest])
    shown.__annotations__ = {name: hint for name, hint in function.__annotations__.items() if name != first.name}
    del shown.__wrapped__
    return method
