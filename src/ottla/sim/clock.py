"""Clocks of the simulator: one that a test moves by hand, one that follows a virtual loop."""

import asyncio

START_MS = 1_700_000_000_000


class ManualClock:
    """`Clock` that a test controls: `advance` moves both times forward, `jump` moves only wall time, either way."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def now_ns(self) -> int:
        return self.now_ms() * 1_000_000

    def monotonic_s(self) -> float:
        return self._monotonic_ms / 1000

    def advance(self, milliseconds: float) -> None:
        if milliseconds < 0:
            raise ValueError("time does not run backwards; to set the wall clock back, use jump()")
        self._monotonic_ms += milliseconds
        self._now_ms += int(milliseconds)

    def jump(self, milliseconds: int) -> None:
        """Set the wall clock forward or back, as an administrator or a time server would."""
        self._now_ms += milliseconds


class LoopClock:
    """`Clock` that reads a loop's time, which a virtual loop moves from timer to timer. Each node may have its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, now_ms: int = START_MS) -> None:
        self._loop = loop
        self._offset_ms = now_ms

    def now_ms(self) -> int:
        return self._offset_ms + int(self._loop.time() * 1000)

    def now_ns(self) -> int:
        return self.now_ms() * 1_000_000

    def monotonic_s(self) -> float:
        return self._loop.time()

    def jump(self, milliseconds: int) -> None:
        """Set this clock's wall time forward or back."""
        self._offset_ms += milliseconds
