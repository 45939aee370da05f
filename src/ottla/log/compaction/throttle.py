"""Keeps a job's reading and writing below a number of bytes per second (log.cleaner.io.max.bytes.per.second)."""

from ottla.env import HelperWorld


class Throttle:
    """Counts bytes, and waits when they exceed the rate. `bytes_per_second` None: no limit."""

    def __init__(self, world: HelperWorld, bytes_per_second: float | None) -> None:
        self._world = world
        self._bytes_per_second = bytes_per_second
        self._started_s = world.clock.monotonic_s()
        self._bytes = 0

    async def spend(self, size_bytes: int) -> None:
        """Count `size_bytes` read or written, and wait until the rate allows them."""
        if self._bytes_per_second is None:
            await self._world.pause(0)
            return
        self._bytes += size_bytes
        early_s = self._bytes / self._bytes_per_second - (self._world.clock.monotonic_s() - self._started_s)
        await self._world.pause(max(0.0, early_s))
