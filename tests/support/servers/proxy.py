"""`Proxy`: a TCP proxy before a broker that loses, delays or cuts what passes through it, and can lead to another broker.

The broker advertises the proxy's port, so that all connections of clients go through it:

    with Proxy() as proxy, start_server(proxy.advertised(listener_port)) as server:
        proxy.target = server.port
        proxy.freeze()       # the connections that exist stay open, and nothing comes back any more
"""

import asyncio
from types import TracebackType

from tests.support.servers.kafka_server import free_ports
from tests.support.servers.loop_thread import LoopThread


class _Pair:
    """A client's connection and the one to the broker that belongs to it."""

    def __init__(self, client: asyncio.StreamWriter, broker: asyncio.StreamWriter) -> None:
        self.writers = (client, broker)
        self.loses_answers = False
        self.loses_requests = False


class Proxy:
    """One listening port on loopback. Its methods may be called from any thread. Use as a context manager."""

    def __init__(self) -> None:
        (self.port,) = free_ports(1)
        self.target = 0
        """The broker's own port."""
        self.delay_s = 0.0
        """How long each piece of data takes, in each direction."""
        self.is_frozen = False
        """Whether new connections are frozen too."""
        self._pairs: set[_Pair] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = LoopThread()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def settings(self) -> dict[str, object]:
        """The settings of a broker behind this proxy. Sets `target`."""
        self.target, controller = free_ports(2)
        return {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.target},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        }

    # Faults

    def lose_answers(self) -> None:
        """From now on the connections that exist carry requests, and no answers."""
        for pair in list(self._pairs):
            pair.loses_answers = True

    def freeze(self) -> None:
        """From now on the connections that exist carry nothing, and stay open: half-open connections."""
        for pair in list(self._pairs):
            pair.loses_answers = pair.loses_requests = True

    def cut(self) -> None:
        """Close the connections that exist."""

        async def close() -> None:
            for pair in list(self._pairs):
                for writer in pair.writers:
                    writer.close()

        self._thread.run(close)

    # Carrying

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_broker, to_broker = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        pair = _Pair(writer, to_broker)
        pair.loses_requests = pair.loses_answers = self.is_frozen
        self._pairs.add(pair)
        for coroutine in (self._carry(pair, reader, to_broker, False), self._carry(pair, from_broker, writer, True)):
            task = asyncio.ensure_future(coroutine)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, pair: _Pair, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, are_answers: bool) -> None:
        try:
            while data := await reader.read(1 << 16):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if not (pair.loses_answers if are_answers else pair.loses_requests):
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        finally:
            self._pairs.discard(pair)
            for each in pair.writers:
                each.close()

    def __enter__(self) -> "Proxy":
        self._server = self._thread.run(lambda: asyncio.start_server(self._accepted, "127.0.0.1", self.port))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        async def close() -> None:
            self._server.close()
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self._thread.run(close)
        self._thread.stop()
