"""Keeps the key set of one issuer up to date: read at the start, then from time to time, and when a token names a new key.

Reading runs in a worker thread. If it fails, the keys that are known stay, and it is tried again with growing pauses. One event
loop; `close` ends it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, NamedTuple

from ottla.broker.authentication.key_set import InvalidKeySet, KeySet, parse_key_set
from ottla.broker.background import watched
from ottla.env.key_sets import KeySetAddress, KeySetFailed, KeySets

logger = logging.getLogger("ottla.security")

EXPEDITED_S: Final = 10.0
"""A token with an unknown key makes the set be read again, at most once in so long."""


class RefreshTimes(NamedTuple):
    """The settings `sasl.oauthbearer.jwks.endpoint.…`."""

    refresh_ms: int = 3_600_000
    backoff_ms: int = 100
    backoff_max_ms: int = 10_000


class SigningKeys:
    """The newest key set. `Keys` for the check of tokens."""

    def __init__(self, source: KeySets, address: KeySetAddress, times: RefreshTimes) -> None:
        self._source = source
        self._address = address
        self._times = times
        self._keys = KeySet()
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._read_s = float("-inf")

    def start(self) -> None:
        """Read the key set, and go on doing so."""
        self._task = watched(f"the key set {self._address.url}", self._keep())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def verify(self, algorithm: str, key_id: str | None, signed: bytes, signature: bytes) -> str | None:
        if not len(self._keys):
            return "the key set could not be read yet"
        if key_id is not None and key_id not in self._keys.ids:
            self._wanted.set()
        return self._keys.verify(algorithm, key_id, signed, signature)

    async def _keep(self) -> None:
        pause_s = self._times.backoff_ms / 1000
        while True:
            self._wanted.clear()
            self._read_s = asyncio.get_running_loop().time()
            try:
                document = await asyncio.get_running_loop().run_in_executor(None, self._source.read, self._address)
                keys = parse_key_set(document)
            except (KeySetFailed, InvalidKeySet) as failed:
                logger.warning("%s; the next attempt is in %.1f s", failed, pause_s)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, self._times.backoff_max_ms / 1000)
                continue
            if keys.ids != self._keys.ids:
                logger.info("the key set %s has %d keys that sign: %s", self._address.url, len(keys), ", ".join(keys.ids))
            self._keys = keys
            pause_s = self._times.backoff_ms / 1000
            await self._until_due()

    async def _until_due(self) -> None:
        try:
            async with asyncio.timeout(self._times.refresh_ms / 1000):
                await self._wanted.wait()
        except TimeoutError:
            return
        wait_s = self._read_s + EXPEDITED_S - asyncio.get_running_loop().time()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
