"""The clients of this process, opened once for each set of settings and used by one task after the other.

Spark reuses its Python workers: connections, metadata and fetch sessions survive from task to task. A consumer belongs to one
task at a time, so a task takes one out of the pool and puts it back; a failed task closes it. The pool is bounded: the
consumers that were used longest ago are closed.

A client is imported when the first of its kind is made (`ottla.Admin`): Spark starts a Python process for every plan, and most
of them need none.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import ottla
from ottla.config.client.kinds import ADMIN
from ottla.errors import KafkaError

if TYPE_CHECKING:
    from ottla import Admin, Consumer, Producer

Settings = Mapping[str, str]
_Key = tuple[tuple[str, str], ...]

CLOSE_TIMEOUT_S = 5.0
IDLE_MAX = 8
"""How many unused consumers a process keeps."""

_lock = threading.Lock()
_idle: list[tuple[_Key, Consumer[Any, Any]]] = []
"""The unused consumers, the one that was used last at the end."""
_producers: dict[_Key, Producer[Any, Any]] = {}
_admins: dict[_Key, Admin] = {}


def _key(settings: Settings) -> _Key:
    return tuple(sorted(settings.items()))


@contextmanager
def consumer(settings: Settings) -> Iterator[Consumer[Any, Any]]:
    """A consumer that commits nothing, for the length of a `with` block."""
    key = _key(settings)
    found = _take(key) or ottla.Consumer(config=dict(settings), enable_auto_commit=False)
    try:
        yield found
    except BaseException:
        found.close(timeout=1)
        raise
    with _lock:
        _idle.append((key, found))
        surplus = [each for _, each in _idle[:-IDLE_MAX]]
        del _idle[:-IDLE_MAX]
    for each in surplus:
        each.close(timeout=1)


def _take(key: _Key) -> Consumer[Any, Any] | None:
    with _lock:
        for index in reversed(range(len(_idle))):
            if _idle[index][0] == key:
                return _idle.pop(index)[1]
    return None


def producer(settings: Settings) -> Producer[Any, Any]:
    """The producer that this process uses for records without a transaction."""
    key = _key(settings)
    with _lock:
        found = _producers.get(key)
        if found is None:
            found = _producers[key] = ottla.Producer(config=dict(settings))
        return found


def admin(settings: Settings) -> Admin:
    """The Admin client of this process. Settings that only other clients have are left out."""
    known = {name: value for name, value in settings.items() if name in ADMIN.table}
    key = _key(known)
    with _lock:
        found = _admins.get(key)
        if found is None:
            found = _admins[key] = ottla.Admin(config=known)
        return found


@atexit.register
def close_all() -> None:
    """Close every idle client of this process. At exit the loop of a client may have ended before it: that is enough."""
    with _lock:
        consumers = [each for _, each in _idle]
        producers, admins = [*_producers.values()], [*_admins.values()]
        _idle.clear()
        _producers.clear()
        _admins.clear()
    for each in consumers:
        with suppress(RuntimeError, KafkaError):
            each.close(timeout=CLOSE_TIMEOUT_S)
    for one in producers:
        with suppress(RuntimeError, KafkaError):
            one.close(timeout=CLOSE_TIMEOUT_S)
    for admin in admins:
        with suppress(RuntimeError, KafkaError):
            admin.close()
