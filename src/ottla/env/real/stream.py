"""`RealStream`: one TCP connection, a raw non-blocking socket on the running loop's `add_reader` and `add_writer`.

This is the broker's hot path. Received bytes go straight into the owner's buffer. A send is tried at once, and only what the
kernel does not take is queued. Bytes are sent with `sendmsg`, many parts per call, and file ranges with `sendfile`. Bytes in
front of a range are sent with MSG_MORE, so that a reply leaves in full packets.

Belongs to one event loop; no call blocks.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
from collections import deque
from collections.abc import Sequence

from ottla.env.disk import Buffer
from ottla.env.net import Sendable, StreamOwner
from ottla.env.real.file import RealFileRange

RECEIVE_BYTES_PER_TURN = 1 << 20
"""How much one connection may receive before others get a turn."""

SEND_BYTES_PER_TURN = 8 << 20
"""How much one connection may send of its queue before others get a turn: 1.5 to 3 ms."""

SMALL_RANGE_BYTES = 8192
"""Ranges up to this size are read and sent in one call with the bytes around them: one packet instead of many."""

PARTS_PER_CALL = 512
"""Parts handed to one sendmsg; the system's own limit (IOV_MAX) is 1024 on Linux and macOS."""

LINGER_S = 1.0
"""How long a cleanly closed stream waits for the peer to close too. See `_linger`."""

HALF_CLOSED: int = getattr(select, "POLLRDHUP", 0)
"""Elsewhere than on Linux only connections that are broken are noticed."""

MORE_FOLLOWS: int = getattr(socket, "MSG_MORE", 0)
BYTE_TYPES = (bytes, bytearray, memoryview)


class RealStream:
    """`Stream` over a connected socket. Its creator sets `owner`, or shuts the stream, before the loop runs again."""

    __slots__ = (
        "_fd",
        "_is_closing",
        "_is_over",
        "_is_reading",
        "_is_registered",
        "_loop",
        "_queue",
        "_range_sent_bytes",
        "_socket",
        "local",
        "owner",
        "peer",
        "unsent_bytes",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, peer: tuple[str, int], local: tuple[str, int]
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._fd = sock.fileno()
        self._queue: deque[Sendable] = deque()
        self._range_sent_bytes = 0  # of the range at the queue's head
        self._is_reading = False
        self._is_registered = False  # may stay set after _is_reading is cleared: see `pause`
        self._is_closing = False
        self._is_over = False
        self.owner: StreamOwner | None = None
        self.peer = peer
        self.local = local
        self.unsent_bytes = 0

    def peer_certificate(self) -> bytes | None:
        return None

    def has_lost_peer(self, *, or_half: bool) -> bool:
        if self._is_over:
            return True
        poll = select.poll()
        poll.register(self._fd, HALF_CLOSED if or_half else 0)  # that it is broken is always told
        return bool(poll.poll(0))

    # Receiving

    def pause(self) -> None:
        # The socket stays registered until bytes arrive: most pauses end before that, and so cost no system call.
        self._is_reading = False

    def resume(self) -> None:
        if self._is_over or self._is_closing:
            return
        self._is_reading = True
        if not self._is_registered:
            self._is_registered = True
            self._loop.add_reader(self._fd, self._readable)

    def _readable(self) -> None:
        if not self._is_reading:
            self._unregister()
            return
        owner = self.owner
        assert owner is not None
        turn_bytes = RECEIVE_BYTES_PER_TURN
        while True:
            target = owner.buffer()
            wanted = len(target)
            try:
                count = self._socket.recv_into(target)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._finish(error)
                return
            del target  # release the view: the owner may resize the buffer
            if count == 0:
                self._finish(None)
                return
            owner.received(count)
            turn_bytes -= count
            # A short count means that the kernel has no more; another call would only cost time.
            if count < wanted or turn_bytes <= 0 or not self._is_reading:
                return

    def _unregister(self) -> None:
        if self._is_registered:
            self._is_registered = False
            self._loop.remove_reader(self._fd)

    # Sending

    def send(self, parts: Sequence[Sendable]) -> None:
        if self._is_over or self._is_closing:
            return
        if self._queue:
            self._queue.extend(parts)
            self.unsent_bytes += sum(map(len, parts))
            return
        if len(parts) == 1 and isinstance(parts[0], BYTE_TYPES):
            part = parts[0]
            try:
                sent = self._socket.send(part)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                self._fail_later(error)
                return
            if sent == len(part):
                return
            self._queue.append(memoryview(part)[sent:])
            self.unsent_bytes = len(part) - sent
        else:
            queue, unsent_bytes = self._queue, 0
            try:
                for each in parts:
                    length = len(each)
                    unsent_bytes += length
                    queue.append(each.read() if isinstance(each, RealFileRange) and length <= SMALL_RANGE_BYTES else each)
                self.unsent_bytes = unsent_bytes
                self._send_queue()
            except OSError as error:
                self._fail_later(error)
                return
            if not self._queue:
                return
        self._loop.add_writer(self._fd, self._writable)

    def _writable(self) -> None:
        try:
            self._send_queue()
        except OSError as error:
            self._finish(error)
            return
        if not self._queue:
            self._loop.remove_writer(self._fd)
            if self._is_closing:
                self._linger()
            elif self.owner is not None:
                self.owner.drained()

    def _send_queue(self) -> None:
        """Send what the kernel takes without blocking, up to `SEND_BYTES_PER_TURN`."""
        queue = self._queue
        enough = self.unsent_bytes - SEND_BYTES_PER_TURN
        try:
            while queue and self.unsent_bytes > enough:
                head = queue[0]
                if isinstance(head, RealFileRange):
                    if not self._send_range(head):
                        return
                elif isinstance(head, BYTE_TYPES):
                    if len(queue) > 1 and isinstance(queue[1], RealFileRange):
                        # The header of the next records. `send` takes half the time of `sendmsg`.
                        sent = self._socket.send(head, MORE_FOLLOWS)
                        self.unsent_bytes -= sent
                        if sent < len(head):
                            queue[0] = memoryview(head)[sent:]
                            return
                        queue.popleft()
                    elif not self._send_bytes(queue):
                        return
                else:
                    queue[0] = head.read()  # a range of an in-memory file, which sendfile cannot send
        except (BlockingIOError, InterruptedError):
            pass

    def _send_bytes(self, queue: deque[Sendable]) -> bool:
        """One `sendmsg` for the bytes at the queue's head, up to the next range. False: the kernel's buffer is full."""
        batch: list[Buffer] = []
        batch_bytes = 0
        flags = 0
        for part in queue:
            if not isinstance(part, BYTE_TYPES):
                flags = MORE_FOLLOWS
                break
            if len(batch) == PARTS_PER_CALL:
                break
            batch.append(part)
            batch_bytes += len(part)
        sent = self._socket.sendmsg(batch, (), flags)
        self.unsent_bytes -= sent
        if sent == batch_bytes:
            for _ in batch:
                queue.popleft()
            return True
        while sent >= len(queue[0]):
            sent -= len(queue.popleft())
        if sent:
            queue[0] = memoryview(queue[0])[sent:]  # type: ignore[arg-type]  # bytes: it was in the batch
        return False

    def _send_range(self, head: RealFileRange) -> bool:
        """One `sendfile` for the range at the queue's head. False: the kernel's buffer is full."""
        already = self._range_sent_bytes
        wanted = min(head.length - already, SEND_BYTES_PER_TURN)
        sent = os.sendfile(self._fd, head.fileno(), head.position + already, wanted) if wanted else 0
        if sent == 0 and wanted:
            raise OSError(
                errno.EIO,
                f"a file ended {head.length - already} bytes before the end of the range that was being sent to {self.peer}",
            )
        self.unsent_bytes -= sent
        if already + sent == head.length:
            self._queue.popleft()
            self._range_sent_bytes = 0
        else:
            self._range_sent_bytes = already + sent
        return sent == wanted

    # Closing

    def close(self) -> None:
        if not self._is_over:
            self.shut()
            self._loop.call_soon(self._report_end, None)

    def close_when_sent(self) -> None:
        if self._is_over or self._is_closing:
            return
        self._is_closing = True
        self._is_reading = False
        if not self._queue:
            self._linger()

    def _linger(self) -> None:
        """Everything is sent: shut down the sending side, and read until the peer closes too, for at most `LINGER_S`.

        Closing a socket with unread bytes makes the kernel send a reset, and on a reset the peer's kernel discards what its
        process has not read yet: our last replies.
        """
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()
            return
        self._unregister()
        self._loop.add_reader(self._fd, self._discard)
        self._is_registered = True
        self._loop.call_later(LINGER_S, self.close)

    def _discard(self) -> None:
        try:
            if self._socket.recv(65_536):
                return
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            pass
        self._finish(None)

    def _fail_later(self, error: OSError) -> None:
        """A send failed inside a call by the owner, so `ended` must wait until that call has returned."""
        self.shut()
        self._loop.call_soon(self._report_end, error)

    def _finish(self, error: OSError | None) -> None:
        self.shut()
        self._report_end(error)

    def _report_end(self, error: OSError | None) -> None:
        if self.owner is not None:
            self.owner.ended(error)

    def shut(self) -> None:
        """Close the socket without calling `ended`. Shutting twice is harmless."""
        self._is_over = True
        self._is_reading = False
        self._unregister()
        if self._queue:
            self._loop.remove_writer(self._fd)
            self._queue.clear()
            self.unsent_bytes = 0
        self._socket.close()
