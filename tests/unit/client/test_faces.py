"""The synchronous and the asyncio form of each client have the same calls, with the same signatures and docstrings."""

import inspect
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest

from ottla import Admin, Consumer, Producer, aio
from ottla.client.faces import blocking, blocking_steps, finished

ONLY_ASYNCIO = {"start"}


def calls_of(face: type) -> dict[str, Callable[..., Any]]:
    return {
        name: getattr(face, name)
        for name in dir(face)
        if not name.startswith("_") and callable(inspect.getattr_static(face, name))
    }


@pytest.mark.parametrize(
    ("blocking_face", "asyncio_face"), [(Producer, aio.Producer), (Consumer, aio.Consumer), (Admin, aio.Admin)]
)
def test_both_faces_have_the_same_calls_signatures_and_docstrings(blocking_face: type, asyncio_face: type) -> None:
    ours, theirs = calls_of(blocking_face), calls_of(asyncio_face)
    assert set(theirs) - set(ours) <= ONLY_ASYNCIO
    assert set(ours) <= set(theirs)
    for name, call in ours.items():
        assert inspect.getdoc(call), name
        if name not in {"close", "with_timeout"} or blocking_face is not Admin:
            assert inspect.getdoc(call) == inspect.getdoc(theirs[name]), name
        assert shape(call) == shape(theirs[name]), name
        assert next(iter(inspect.signature(call).parameters)) == "self", name


def shape(call: Callable[..., Any]) -> list[tuple[str, object, object]]:
    """A call's parameters without their types: the compiled `send` knows none."""
    return [(each.name, each.kind, each.default) for each in inspect.signature(call).parameters.values()]


def test_only_calls_that_wait_are_coroutines() -> None:
    plain = {name for name, call in calls_of(aio.Consumer).items() if not inspect.iscoroutinefunction(call)}
    assert {"assign", "subscribe", "seek", "pause", "resume", "commit_async", "wakeup", "read_ranges"} <= plain
    assert not {"poll", "batches", "commit", "position", "close"} & plain
    assert not any(inspect.iscoroutinefunction(call) for call in calls_of(Consumer).values())
    assert not any(inspect.iscoroutinefunction(call) for call in calls_of(Producer).values())


class Face:
    """A synchronous face of one call, and what has happened in it."""

    def __init__(self) -> None:
        self.seen: list[str] = []


async def steps(self: Face, count: int) -> Any:
    """Count."""
    try:
        for number in range(count):
            yield number
    except ValueError:
        self.seen.append("raised")
        raise
    finally:
        self.seen.append("closed")


def test_a_generator_of_a_synchronous_face_ends_closes_and_raises_as_the_asyncio_one_does() -> None:
    counted = blocking_steps(steps)
    face = Face()
    assert list(counted(face, 3)) == [0, 1, 2]
    assert face.seen == ["closed"]
    abandoned: Any = counted(face, 3)
    next(abandoned)
    abandoned.close()
    assert face.seen == ["closed", "closed"]
    with pytest.raises(ValueError, match="inside"), contextmanager(counted)(face, 1):
        raise ValueError("inside")
    assert face.seen[2:] == ["raised", "closed"]
    with pytest.raises(StopIteration), contextmanager(counted)(face, 1):
        raise StopIteration


def test_a_call_that_suspends_in_a_synchronous_face_is_a_bug_and_says_so() -> None:
    class Suspended:
        def __await__(self) -> Any:
            yield

    async def wait(self: Face) -> None:
        await Suspended()

    with pytest.raises(RuntimeError, match="bug of Ottla"):
        blocking(wait)(Face())
    with pytest.raises(KeyError):
        finished(refuse())


async def refuse() -> None:
    raise KeyError("what a call raises comes out unchanged")
