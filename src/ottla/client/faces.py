"""How the faces of a producer and a consumer are made of one description: the functions in a `calls.py`.

A function there is one public method: its signature, its docstring and what it does, as a coroutine over `self`, a face. What
has to happen on the event loop goes through a few steps that each face defines. The asyncio face awaits them. In the
synchronous face they block the calling thread, so that a coroutine runs from beginning to end in that thread, without a loop:
`finished` returns its result. Serializers, listeners and what users pass as iterables so run in the caller's thread or task.

Nothing here imports asyncio: importing `ottla.Producer` must stay cheap.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

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
