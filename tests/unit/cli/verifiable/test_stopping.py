"""Signals that stop a verifiable client."""

import asyncio
import os
import signal

import pytest

from ottla.cli import verifiable as room
from ottla.cli.verifiable import stopping


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, None), (signal.SIGINT, 130)])
def test_first_signal_stops_and_a_repeated_one_is_ignored(number: signal.Signals, code: int | None) -> None:
    async def run() -> list[str]:
        calls: list[str] = []
        called = asyncio.Event()

        def stop() -> None:
            calls.append("stop")
            called.set()

        with stopping(stop) as stopped:
            os.kill(os.getpid(), number)
            await called.wait()
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.05)  # long enough for the loop to see the second one, if it counts
            assert (stopped.signal, stopped.exit_code) == (number, code)
        return calls

    assert asyncio.run(run()) == ["stop"]


def test_signals_have_their_default_effect_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "REPEATED_S", 0.01)
    before = signal.getsignal(signal.SIGINT)

    async def run() -> None:
        with stopping(lambda: None):
            os.kill(os.getpid(), signal.SIGTERM)
            while signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
                await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(run(), 60))
    assert signal.getsignal(signal.SIGINT) is before
