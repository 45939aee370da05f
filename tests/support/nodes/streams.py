"""Stream owners for tests: they record received data and events, which can be awaited."""

import asyncio
from collections.abc import Callable

from ottla.env import Stream


class Recorder:
    """`StreamOwner` that records all calls. `data` is what was received, `events` the other calls in order."""

    def __init__(self, buffer_bytes: int = 65_536) -> None:
        self._buffer = bytearray(buffer_bytes)
        self._changed = asyncio.Event()
        self.data = bytearray()
        self.events: list[str] = []
        self.error: OSError | None = None
        self.counts: list[int] = []
        self.on_received: Callable[[], None] = lambda: None

    def buffer(self) -> memoryview:
        return memoryview(self._buffer)

    def received(self, count: int) -> None:
        assert "ended" not in self.events
        assert 0 < count <= len(self._buffer)
        self.counts.append(count)
        self.data += self._buffer[:count]
        self.on_received()
        self._changed.set()

    def drained(self) -> None:
        assert "ended" not in self.events
        self.events.append("drained")
        self._changed.set()

    def ended(self, error: OSError | None) -> None:
        assert "ended" not in self.events
        self.events.append("ended")
        self.error = error
        self._changed.set()

    async def until(self, condition: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
        """Wait until `condition` holds; it is checked after every call to this owner."""
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            got = f"{len(self.data)} bytes, {self.events}"
            raise AssertionError(f"not within {timeout_s} s: {what}; there is only {got}") from None

    async def until_received(self, count: int) -> bytes:
        await self.until(lambda: len(self.data) >= count, f"{count} bytes")
        return bytes(self.data)

    async def until_ended(self) -> OSError | None:
        await self.until(lambda: "ended" in self.events, "the end of the stream")
        return self.error


class Acceptor:
    """What a listener calls: gives every stream a `Recorder`, and lets it receive unless `resume` is False."""

    def __init__(self, resume: bool = True) -> None:
        self._resume = resume
        self._arrived = asyncio.Event()
        self.accepted: list[tuple[Stream, Recorder]] = []

    def __call__(self, stream: Stream) -> Recorder:
        recorder = Recorder()
        self.accepted.append((stream, recorder))
        if self._resume:
            stream.resume()
        self._arrived.set()
        return recorder

    async def next(self, count: int = 1, timeout_s: float = 60) -> tuple[Stream, Recorder]:
        """The `count`th stream, once it is there."""
        async with asyncio.timeout(timeout_s):
            while len(self.accepted) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.accepted[count - 1]
