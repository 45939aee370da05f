"""`StopSignals`: SIGTERM and SIGINT stop a worker instead of its process; a second one ends its grace period."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopping_on_signals(stop: Callable[[], Any]) -> Iterator[None]:
    """Call `stop`, in the main thread, at each signal. Another thread than the main one cannot handle signals: it does not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, lambda number, frame: stop()) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler if handler is not None else signal.SIG_DFL)


@contextmanager
def stopping_loop_on_signals(stop: Callable[[], Any]) -> Iterator[None]:
    """Call `stop`, on the running loop, at each signal, if the loop runs in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {each: signal.getsignal(each) for each in SIGNALS}
    for each in SIGNALS:
        loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            loop.remove_signal_handler(each)
            signal.signal(each, handler if handler is not None else signal.SIG_DFL)
