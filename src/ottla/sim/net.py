"""A network in memory that implements `env/net.py` and fails as networks do, by a seed.

`SimNetwork` connects hosts; `host(name)` is the `Network` of a node on that host. Hosts are addressed by name. The faults:

- bytes are delayed, and a sent part arrives in pieces (`Weather`); a lost packet arrives late, because it is sent again;
- connections are cut at random: both ends get a reset, and bytes in transit are lost;
- `part(a, b)` partitions two hosts until `heal`: nothing is lost, but nothing arrives, and connecting times out. `part_one_way`
  does so in one direction;
- `cut(a, b)` resets all connections between two hosts;
- `crash(name)` ends all streams and listeners of a host. Its own code gets no event, like a dead process. The other ends get a
  reset or, if the whole machine is gone (`silently`), no event either. After `remove(name)` connecting to it times out.

Not thread-safe: one event loop.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from random import Random

from ottla.env.net import DEFAULT_OPTIONS, Accept, AddressRefused, Sendable, SocketOptions, StreamOwner
from ottla.env.tls import ShownCertificate, TlsFailed, TlsOptions
from ottla.sim.loop import VirtualLoop

FIRST_FREE_PORT = 40_000


@dataclass(frozen=True, slots=True)
class Weather:
    """The random behaviour of the network: delays, pieces and cuts."""

    delay_s_min: float = 0.000_05
    delay_s_max: float = 0.001
    pieces_chance: float = 0.3
    """How likely a part is to arrive in several pieces."""
    cut_chance: float = 0.0
    """How likely a connection is to be cut before any one piece arrives."""
    loss_chance: float = 0.0
    """How likely a piece is to be lost and sent again."""
    resend_s_max: float = 0.6
    window_bytes: int = 65_536
    connect_timeout_s: float = 10.0


CALM = Weather()


class SimNetwork:
    """The network between all hosts. `counts` counts its faults, so that a test can assert that they happened."""

    def __init__(self, random: Random | None = None, weather: Weather = CALM) -> None:
        self.random = random if random is not None else Random(0)
        self.weather = weather
        self.counts: Counter[str] = Counter()
        self.context = copy_context()
        """Of no process: what happens in it goes on when processes die."""
        self._listeners: dict[tuple[str, int], SimListener] = {}
        self._streams: dict[int, SimStream] = {}  # by identity, in order of creation
        self._parted: dict[tuple[str, str], None] = {}
        self._next_port: Counter[str] = Counter()
        self._down: dict[str, list[SimStream]] = {}
        """Hosts without power → the streams that their peers have sent bytes to since."""
        self._removed: dict[str, None] = {}

    def host(self, name: str) -> SimHost:
        """The network as seen from host `name`."""
        return SimHost(self, name)

    # Faults

    def part(self, one: str, other: str) -> None:
        """Partition two hosts until `heal`."""
        self._parted[one, other] = self._parted[other, one] = None
        self.counts["partitions"] += 1

    def part_one_way(self, source: str, target: str) -> None:
        """Hold back everything that `source` sends to `target`, until `heal`."""
        self._parted[source, target] = None
        self.counts["one-way partitions"] += 1

    def heal(self, one: str | None = None, other: str | None = None) -> None:
        """Let two hosts reach each other again; without names, all of them."""
        if one is None or other is None:
            self._parted.clear()
        else:
            self._parted.pop((one, other), None)
            self._parted.pop((other, one), None)
        for stream in list(self._streams.values()):
            if not self.blocks(stream.peer[0], stream.local[0]):
                stream.partition_ended()

    def cut(self, one: str, other: str) -> None:
        """Reset every connection between two hosts."""
        for stream in list(self._streams.values()):
            if (stream.local[0], stream.peer[0]) == (one, other):
                self.counts["cuts"] += 1
                stream.break_off()

    def crash(self, name: str, silently: bool = False) -> None:
        """End all streams and listeners of host `name`. A restarted process can use the host at once."""
        self.counts["crashes"] += 1
        if silently:
            self._down.setdefault(name, [])
        for address, listener in list(self._listeners.items()):
            if address[0] == name:
                listener.close()
        for stream in list(self._streams.values()):
            if stream.local[0] == name and not stream.is_over:
                stream.vanish(is_lost=silently)
                self.forget(stream)
                if not silently:
                    stream.put_on_the_way(None, reset_error())

    def boot(self, name: str) -> None:
        """A host has power again: it knows nothing of its connections, and resets those on which it gets bytes.

        Peers send unacknowledged bytes again. A peer that waits for an answer sends nothing, and hears nothing.
        """
        for stream in self._down.pop(name, ()):
            stream.put_on_the_way(None, reset_error())

    def remove(self, name: str) -> None:
        """Host `name`, which has no power, is gone for good: connecting to it times out."""
        self._removed[name] = None

    def lost(self, stream: SimStream) -> None:
        """Bytes have arrived for a stream whose host has lost its power since."""
        waiting = self._down.get(stream.local[0])
        if waiting is None:
            stream.put_on_the_way(None, reset_error())
        elif stream not in waiting:
            waiting.append(stream)

    def is_parted(self, one: str, other: str) -> bool:
        """Whether two hosts cannot connect."""
        return (one, other) in self._parted or (other, one) in self._parted or other in self._removed

    def blocks(self, source: str, target: str) -> bool:
        """Whether what `source` sends to `target` is held back."""
        return (source, target) in self._parted

    # Random behaviour

    def delay_s(self) -> float:
        delay_s = self.random.uniform(self.weather.delay_s_min, self.weather.delay_s_max)
        if self.weather.loss_chance > 0 and self.random.random() < self.weather.loss_chance:
            self.counts["losses"] += 1
            delay_s += self.random.uniform(0.1, 1.0) * self.weather.resend_s_max
        return delay_s

    def strikes(self) -> bool:
        return self.weather.cut_chance > 0 and self.random.random() < self.weather.cut_chance

    def pieces(self, view: memoryview) -> Iterator[memoryview]:
        """`view`, split at random into the pieces that arrive."""
        if self.random.random() < self.weather.pieces_chance:
            for _ in range(PIECES_PER_SEND_MAX - 1):
                if len(view) < 2:
                    break
                count = self.random.randint(1, len(view) - 1)
                yield view[:count]
                view = view[count:]
        yield view

    # Streams and listeners

    def add(self, stream: SimStream) -> None:
        self._streams[id(stream)] = stream

    def forget(self, stream: SimStream) -> None:
        self._streams.pop(id(stream), None)

    def add_listener(self, listener: SimListener) -> None:
        self._listeners[listener.address] = listener

    def remove_listener(self, listener: SimListener) -> None:
        if self._listeners.get(listener.address) is listener:
            del self._listeners[listener.address]

    def listener(self, name: str, port: int) -> SimListener | None:
        return self._listeners.get((name, port))

    def free_port(self, name: str) -> int:
        self._next_port[name] += 1
        return FIRST_FREE_PORT + self._next_port[name]


class SimHost:
    """`Network` of one host."""

    def __init__(self, network: SimNetwork, name: str) -> None:
        self._network = network
        self.name = name

    async def listen(
        self,
        host: str,
        port: int,
        accept: Accept,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> SimListener:
        if tls is not None:
            self.check_tls(tls)
        if host not in ("", self.name):
            raise AddressRefused(f"cannot listen on {host}, port {port}: this is the host {self.name}")
        port = port or self._network.free_port(self.name)
        if self._network.listener(self.name, port) is not None:
            raise AddressRefused(f"cannot listen on {self.name}, port {port}: the port is taken")
        listener = SimListener(self._network, (self.name, port), accept)
        self._network.add_listener(listener)
        return listener

    def check_tls(self, options: TlsOptions) -> None:
        raise TlsFailed("the simulated network has no TLS: connect without, or use the real network")

    def shown_certificate(self, options: TlsOptions, *, must_be_trusted: bool = False) -> ShownCertificate:
        raise TlsFailed("the simulated network has no TLS: connect without, or use the real network")

    async def connect(
        self,
        host: str,
        port: int,
        owner: StreamOwner,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> SimStream:
        if tls is not None:
            self.check_tls(tls)
        network = self._network
        await asyncio.sleep(network.delay_s())
        if network.is_parted(self.name, host):
            await asyncio.sleep(network.weather.connect_timeout_s)
            raise TimeoutError(errno.ETIMEDOUT, f"{host} did not answer")
        listener = network.listener(host, port)
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nothing listens on {host}, port {port}")
        here, there = (self.name, network.free_port(self.name)), listener.address
        near, far = SimStream(network, here, there), SimStream(network, there, here, listener.context.copy())
        near.other, far.other = far, near
        near.owner = owner
        network.add(near)
        network.add(far)
        listener.offer(far)
        await asyncio.sleep(network.delay_s())
        return near

    async def canonical_names(self, host: str) -> list[str]:
        return [host]


class SimListener:
    """`Listener` of one host."""

    def __init__(self, network: SimNetwork, address: tuple[str, int], accept: Accept) -> None:
        self._network = network
        self._accept = accept
        self._backlog: deque[SimStream] = deque()
        self._is_paused = False
        self._is_closed = False
        self.address = address
        self.context = copy_context()

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._accept_soon()

    async def renew_tls(self, options: TlsOptions) -> None:
        raise AssertionError("no simulated listener has TLS")

    def close(self) -> None:
        self._is_closed = True
        self._network.remove_listener(self)
        for stream in self._backlog:
            stream.break_off()
        self._backlog.clear()

    def offer(self, stream: SimStream) -> None:
        """Queue a new connection; the listener accepts it in the next turn of the loop."""
        self._backlog.append(stream)
        self._accept_soon()

    def _accept_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._accept_waiting, context=self.context)

    def _accept_waiting(self) -> None:
        while self._backlog and not self._is_paused and not self._is_closed:
            stream = self._backlog.popleft()
            if stream.is_over:
                continue  # reset while it waited: its owner would get no call to `ended`
            stream.owner = self._accept(stream)
            if stream.owner is None:
                stream.close()


PIECES_PER_SEND_MAX = 8
BYTE_TYPES = (bytes, bytearray, memoryview)


def reset_error() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, "the connection was cut by the simulated network")


class SimStream:
    """One end of a connection in the simulated network (`net.py` has the hosts and the faults between them).

    Bytes arrive in order, with random delays and in random pieces. At most `window_bytes` are in transit or unread; the rest
    waits in the sender's queue, as behind full kernel buffers. Calls to the owner of an end run in the context in which that
    end was created, so that they belong to the owner's process.

    `Stream` in memory. `other` is the far end; `owner` is set before the first event.
    """

    def __init__(
        self, network: SimNetwork, local: tuple[str, int], peer: tuple[str, int], context: Context | None = None
    ) -> None:
        self._network = network
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "the simulated network needs virtual time"
        self._loop = loop
        self._context = context if context is not None else copy_context()
        self._queue: deque[Sendable] = deque()
        self._had_queue = False
        self._under_way_bytes = 0  # sent, and not yet received by the other side's owner
        self._last_arrival_s = 0.0
        self._inbox: deque[memoryview] = deque()
        self._held: deque[tuple[memoryview | None, OSError | None]] = deque()  # behind a partition
        self._end: tuple[OSError | None] | None = None  # of the incoming bytes, once the inbox is empty
        self._is_reading = False
        self._is_closing = False
        self.is_over = False
        self._is_lost = False
        self.owner: StreamOwner | None = None
        self.other: SimStream
        self.local = local
        self.peer = peer
        self.unsent_bytes = 0

    def peer_certificate(self) -> bytes | None:
        return None

    def has_lost_peer(self, *, or_half: bool) -> bool:
        if self.is_over:
            return True
        return self._end is not None and (or_half or self._end[0] is not None)

    # Sending

    def send(self, parts: Sequence[Sendable]) -> None:
        if self.is_over or self._is_closing:
            return
        if self._end is not None and self._end[0] is not None:
            self._finish_soon(self._end[0])  # the peer reset it; a paused stream finds out when it sends
            return
        self._queue.extend(part for part in parts if len(part))
        self.unsent_bytes += sum(map(len, parts))
        self._push()
        self._had_queue = self._had_queue or bool(self._queue)

    def _push(self) -> None:
        """Send as much of the queue as the window has room for."""
        window_bytes = self._network.weather.window_bytes
        room = window_bytes - self._under_way_bytes
        if room < min(self.unsent_bytes, window_bytes // 2):
            return  # wait for more room: filling every gap would end in pieces of single bytes
        while self._queue and room > 0:
            head = self._queue.popleft()
            try:
                view = memoryview(head if isinstance(head, BYTE_TYPES) else head.read())
            except OSError as error:
                self.put_on_the_way(None, None)
                self._finish_soon(error)
                return
            if len(view) > room:
                self._queue.appendleft(view[room:])
                view = view[:room]
            room -= len(view)
            self.unsent_bytes -= len(view)
            self._under_way_bytes += len(view)
            for piece in self._network.pieces(view):
                if self._network.strikes():
                    self._loop.call_at_true(self._arrival_s(), self._cut, context=self._context)
                self.put_on_the_way(memoryview(bytes(piece)), None)

    def put_on_the_way(self, piece: memoryview | None, error: OSError | None) -> None:
        """Schedule the arrival of bytes, or of the stream's end (None), at the other side."""
        # What is sent to a host without power arrives there, not at its dead process, whose timers never fire.
        context = self._network.context if self.other._is_lost else self.other._context
        self._loop.call_at_true(self._arrival_s(), self.other.arrive, piece, error, context=context)

    def _arrival_s(self) -> float:
        # Never two at the same time: the loop does not order timers with equal times.
        self._last_arrival_s = max(self._last_arrival_s + 1e-9, self._loop.true_time() + self._network.delay_s())
        return self._last_arrival_s

    def _room_again(self, count: int) -> None:
        self._under_way_bytes -= count
        if self.is_over:
            return
        self._push()
        if self.is_over or self._queue:
            return
        if self._is_closing:
            self._send_end()
        elif self._had_queue:
            self._had_queue = False
            if self.owner is not None:
                self.owner.drained()

    # Receiving

    def pause(self) -> None:
        self._is_reading = False

    def resume(self) -> None:
        if not self.is_over and not self._is_closing and not self._is_reading:
            self._is_reading = True
            self._loop.call_soon(self._deliver, context=self._context)

    def arrive(self, piece: memoryview | None, error: OSError | None) -> None:
        """Bytes or the end arrive. While the two hosts are partitioned they are held back."""
        if self._is_lost:
            self._arrive_at_lost(piece, error)
            return
        if self._held or self._network.blocks(self.peer[0], self.local[0]):
            self._held.append((piece, error))
            return
        if self.is_over or self._end is not None:
            return
        if piece is not None:
            self._inbox.append(piece)
        else:
            if error is not None:
                self._inbox.clear()  # a reset discards unread bytes
            self._end = (error,)
        self._deliver()

    def _arrive_at_lost(self, piece: memoryview | None, error: OSError | None) -> None:
        """Like `arrive`, at a host that has lost its power. Behind a partition the peer sends again until it ends."""
        if self._network.blocks(self.peer[0], self.local[0]):
            again_s = self._loop.true_time() + self._network.weather.resend_s_max
            self._loop.call_at_true(again_s, self.arrive, piece, error, context=self._network.context)
        else:
            self._network.lost(self)

    def partition_ended(self) -> None:
        self._loop.call_soon(self._release_held, context=self._context)

    def _release_held(self) -> None:
        held, self._held = self._held, deque()
        for piece, error in held:
            self.arrive(piece, error)

    def _deliver(self) -> None:
        while self._inbox and (self._is_reading or self._is_closing):
            piece = self._inbox.popleft()
            if self._is_closing:
                count = len(piece)
            else:
                assert self.owner is not None
                target = self.owner.buffer()
                count = min(len(target), len(piece))
                target[:count] = piece[:count]
                del target
                if count < len(piece):
                    self._inbox.appendleft(piece[count:])
                self.owner.received(count)
            self._loop.call_soon(self.other._room_again, count, context=self.other._context)
        if self._end is not None and not self._inbox and (self._is_reading or self._is_closing) and not self.is_over:
            self._finish(self._end[0])

    # Closing

    def close(self) -> None:
        if not self.is_over:
            error = reset_error() if self._inbox else None
            self.put_on_the_way(None, error)
            self._finish_soon(None)

    def close_when_sent(self) -> None:
        if self.is_over or self._is_closing:
            return
        self._is_closing = True
        self._is_reading = False
        if not self._queue:
            self._send_end()

    def _send_end(self) -> None:
        self.put_on_the_way(None, None)
        self._finish_soon(None)

    def _cut(self) -> None:
        """The network cuts the connection: both ends get a reset, and bytes in transit are lost."""
        self._network.counts["cuts"] += 1
        self.break_off()

    def break_off(self) -> None:
        """Reset both ends, each in its own context."""
        for end in (self, self.other):
            end._loop.call_soon(end._broken, context=end._context)

    def _broken(self) -> None:
        if not self.is_over:
            self._finish(reset_error())

    def vanish(self, is_lost: bool = False) -> None:
        """The process of this end is gone: end without a call to its owner. `is_lost`: its host has lost its power."""
        self.is_over = True
        self._is_lost = is_lost
        if is_lost and self.other._under_way_bytes > sum(map(len, self._inbox)):
            self._network.lost(self)  # the peer sends again what was on its way
        self._queue.clear()
        self.unsent_bytes = 0
        self._inbox.clear()

    def _finish_soon(self, error: OSError | None) -> None:
        self.vanish()
        self._loop.call_soon(self._report_end, error, context=self._context)

    def _finish(self, error: OSError | None) -> None:
        self.vanish()
        self._report_end(error)

    def _report_end(self, error: OSError | None) -> None:
        self._network.forget(self)
        if self.owner is not None:
            self.owner.ended(error)
