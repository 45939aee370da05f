"""Event loops in threads: results, exceptions, timeouts, interrupts, and calls from the wrong thread."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from ottla.env.real.threads import RealLoopThread, RealSignal, RealThreads


@pytest.fixture
def thread() -> Iterator[RealLoopThread]:
    thread = RealThreads().start_loop("test")
    yield thread
    thread.stop(5)
    assert not thread.is_alive


def test_a_call_returns_the_result_from_the_other_thread(thread: RealLoopThread) -> None:
    async def where() -> int:
        return threading.get_ident()

    assert thread.call(where) != threading.get_ident()


def test_a_call_raises_what_was_raised(thread: RealLoopThread) -> None:
    async def fail() -> None:
        raise LookupError("there")

    with pytest.raises(LookupError, match="there"):
        thread.call(fail)
    with pytest.raises(ZeroDivisionError):
        thread.call(lambda: asyncio.sleep(1 // 0))


def test_a_call_that_takes_too_long_is_cancelled_before_the_timeout_is_raised(thread: RealLoopThread) -> None:
    running: list[str] = []
    calls: list[str] = []

    async def forever() -> None:
        running.append("call")
        calls.append("call")
        try:
            await asyncio.Event().wait()
        finally:
            running.remove("call")

    for timeout_s in (0.02, 0.2, 2.0, 20.0):  # on a busy machine a short time ends before the call begins
        with pytest.raises(TimeoutError):
            thread.call(forever, timeout_s=timeout_s)
        assert running == []
        if calls:
            return
    pytest.fail("no call began within 20 s")


def test_ctrl_c_cancels_the_call_and_the_thread_stays_usable(thread: RealLoopThread) -> None:
    began = threading.Event()
    ended: list[str] = []

    async def forever() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    def interrupt() -> None:
        began.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            thread.call(forever)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert ended == ["cancelled"]
    assert thread.call(lambda: asyncio.sleep(0, "still here")) == "still here"


def test_a_call_from_the_thread_itself_is_refused(thread: RealLoopThread) -> None:
    async def call_again() -> None:
        thread.call(lambda: asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="wait for itself"):
        thread.call(call_again)


def test_a_posted_callback_runs_in_the_thread(thread: RealLoopThread) -> None:
    ran = threading.Event()
    thread.post(lambda: ran.set() if thread.is_current else None)
    assert ran.wait(60)


def test_stop_cancels_what_still_runs() -> None:
    thread = RealLoopThread("test")
    ended = threading.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    thread.post(lambda: asyncio.ensure_future(forever()))
    thread.call(lambda: asyncio.sleep(0))
    thread.stop(5)
    assert ended.is_set()
    assert not thread.is_alive


def test_a_call_that_comes_while_the_loop_ends_is_cancelled() -> None:
    """Nothing runs its task any more: it would wait for ever."""
    thread = RealThreads().start_loop("test")
    is_ending = threading.Event()
    may_end = threading.Event()
    tasks: list[asyncio.Future[None]] = []
    raised: list[BaseException] = []

    async def end_slowly() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            is_ending.set()
            while not may_end.is_set():
                await asyncio.sleep(0.01)

    async def begin() -> None:
        tasks.append(asyncio.ensure_future(end_slowly()))
        await asyncio.sleep(0)

    async def wait() -> None:
        may_end.set()
        await asyncio.sleep(60)

    def call() -> None:
        try:
            thread.call(wait)
        except asyncio.CancelledError as error:
            raised.append(error)

    thread.call(begin)
    stopping = threading.Thread(target=thread.stop, args=(5,))
    stopping.start()
    assert is_ending.wait(60)
    calling = threading.Thread(target=call, daemon=True)
    calling.start()
    calling.join(60)
    stopping.join(60)
    assert len(raised) == 1


def test_a_thread_is_not_alive_in_a_forked_child(thread: RealLoopThread) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"alive" if thread.is_alive else b"gone")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 10) == b"gone"
    os.close(reading)
    os.close(writing)
    assert thread.is_alive


def test_locks_and_signals_work_between_threads() -> None:
    threads = RealThreads()
    lock, signal_ = threads.lock(), threads.signal()
    with lock:
        other = threading.Thread(target=lambda: (lock.__enter__(), signal_.set()))
        other.start()
        assert not signal_.wait(0.02)
    assert signal_.wait(60)
    other.join()
    assert threads.process_id() == os.getpid()
    assert threads.thread_id() == threading.get_ident()


def test_a_signal_wakes_all_threads_and_can_be_cleared() -> None:
    signal_ = RealThreads().signal()
    woken: list[bool] = []
    waiters = [threading.Thread(target=lambda: woken.append(signal_.wait(60))) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    signal_.set()
    signal_.set()
    for waiter in waiters:
        waiter.join()
    assert woken == [True, True, True]
    signal_.clear()
    assert not signal_.wait(0.01)


def wait_interrupted(signal_: RealSignal) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    while not signal_.wait(0.001):
        pass


def test_an_interrupt_ends_a_wait_cleanly_every_time() -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(500):
            with pytest.raises(KeyboardInterrupt):
                wait_interrupted(RealThreads().signal())
    finally:
        signal.signal(signal.SIGALRM, previous)
