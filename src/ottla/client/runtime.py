"""`ClientRuntime`: drives the machines of one client over its connections.

Each round asks every machine for the requests that are due and sends them. A round runs when an answer or a failure has come,
when a deadline is reached, and when the owner calls `wake`. An answer that a machine cannot use fails its request; it does not
end the loop. A machine whose `step` fails is broken: the owner is called, because nothing can go on.

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from ottla.client.connections import ConnectionPool, kafka_error
from ottla.client_core.machine import Connect, Machine, Rebootstrap, Request
from ottla.env.clock import Clock
from ottla.errors import KafkaError, exception_of
from ottla.link import Link, LinkError
from ottla.wire.apis import APIS
from ottla.wire.base import EncodeError, Message

logger = logging.getLogger("ottla.client")

ROUNDS_MAX = 10
"""How often one turn of the loop asks the machines before others get a turn. One machine's step can make another's due."""


WARNED_EVERY_S = 5.0
"""How long a client says nothing of further lost connections, after it has logged one."""


class Observer(Protocol):
    """Sees what a client sends and what comes back, before its machines do. It must not change anything."""

    def sent(self, request: Request, message: Message, version: int) -> None:
        """`message` is sent now."""
        ...

    def answered(self, request: Request, response: Any, version: int) -> None:
        """The answer has come; None for a request that gets none."""
        ...

    def failed(self, request: Request, error: KafkaError) -> None:
        """No answer will come."""
        ...


class ClientRuntime:
    """Runs machines until it is closed."""

    def __init__(
        self,
        machines: Sequence[Machine],
        pool: ConnectionPool,
        clock: Clock,
        after_round: Callable[[], None] | None = None,
        on_broken: Callable[[Exception], None] | None = None,
    ) -> None:
        self._machines = list(machines)
        self._pool = pool
        self._clock = clock
        self._after_round = after_round
        self._on_broken = on_broken
        self.observer: Observer | None = None
        """For the simulator, whose checkers compare what clients and node said to each other."""
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._round: asyncio.Handle | None = None
        self._tasks: dict[asyncio.Task[None], None] = {}  # in order, so that a simulated run always ends them in the same
        self._is_closed = False
        self._is_disturbed = False
        self._warned_s = -WARNED_EVERY_S

    def now_ms(self) -> int:
        """The time that machines get."""
        return int(self._clock.monotonic_s() * 1000)

    def wake(self) -> None:
        """Ask the machines on the loop's next turn. Must be called on the loop."""
        if self._round is None and not self._is_closed:
            self._round = self._loop.call_soon(self._run)

    def add(self, machine: Machine) -> None:
        """Run one more machine."""
        self._machines.append(machine)
        self.wake()

    def remove(self, machine: Machine) -> None:
        """No longer run a machine. Outcomes of its requests are still handed to it."""
        self._machines.remove(machine)

    def close(self) -> None:
        """Send nothing more. The connections stay: their owner closes them."""
        self._is_closed = True
        for handle in (self._timer, self._round):
            if handle is not None:
                handle.cancel()
        for task in self._tasks:
            task.cancel()

    # Rounds

    def _run(self) -> None:
        self._round = None
        if self._is_closed:
            return
        try:
            for _ in range(ROUNDS_MAX):
                if not self._step():
                    break
            else:
                self.wake()
            if self._after_round is not None:
                self._after_round()
        except Exception as fault:
            logger.exception("a client's state machine failed: please report this as a bug of Ottla")
            self.close()
            if self._on_broken is not None:
                self._on_broken(fault)
            return
        self._arm()

    def _step(self) -> bool:
        """One round; whether any machine wanted something sent."""
        now_ms = self.now_ms()
        is_busy = False
        for machine in self._machines:
            for request in machine.step(now_ms):
                is_busy = True
                self._dispatch(machine, request)
        return is_busy

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadlines = [at_ms for machine in self._machines if (at_ms := machine.next_deadline_ms()) is not None]
        if deadlines and not self._is_closed:
            wait_s = max(0.0, min(deadlines) / 1000 - self._clock.monotonic_s())
            self._timer = self._loop.call_later(wait_s, self.wake)

    # Requests

    def _dispatch(self, machine: Machine, request: Request) -> None:
        if isinstance(request, Rebootstrap):
            self._pool.rebootstrap(request.reason)
            self._loop.call_soon(self._carried_out, machine, request)
            return
        node_id = self._pool.resolve(request.node)
        link = self._pool.open_link(node_id, request.channel)
        if link is not None:
            self._send(machine, request, link)
            return
        task = self._loop.create_task(self._connect_and_send(machine, request, node_id))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _connect_and_send(self, machine: Machine, request: Request, node_id: int) -> None:
        try:
            link = await self._pool.link(node_id, request.channel)
        except LinkError as failure:
            error = kafka_error(failure)
            error.is_unsent = True
            self._lost(error)
            self._fail(machine, request, error)
        else:
            self._send(machine, request, link)

    def _send(self, machine: Machine, request: Request, link: Link) -> None:
        if isinstance(request, Connect):
            self._loop.call_soon(self._carried_out, machine, request)
            return
        try:
            version = link.versions.newest(request.message.KEY)
            if request.version_max is not None:
                version = min(version, request.version_max)
            message = request.message if request.adapt is None else request.adapt(version)
            if self.observer is not None:
                self.observer.sent(request, message, version)
            if request.is_answered:
                future = link.send(message, request.timeout_ms, version)
                future.add_done_callback(partial(self._done, machine, request, version))
            else:
                left = link.send_unanswered(message, version)
                left.add_done_callback(partial(self._done, machine, request, version))
        except (LinkError, EncodeError) as failure:
            error = kafka_error(failure)
            error.is_unsent = True
            self._loop.call_soon(self._fail, machine, request, error)

    def _carried_out(self, machine: Machine, request: Connect | Rebootstrap) -> None:
        if not self._is_closed:
            machine.answered(request, None, 0, self.now_ms())
            self.wake()

    def _done(self, machine: Machine, request: Request, version: int, future: asyncio.Future[Any]) -> None:
        if future.cancelled():
            return
        failure = future.exception()
        if failure is None:
            self._answer(machine, request, future.result(), version)
        elif isinstance(failure, LinkError):
            error = kafka_error(failure)
            self._lost(error)
            self._fail(machine, request, error)
        else:
            self._fail(machine, request, exception_of(-1, f"a request failed on this side: {failure}"))

    def _lost(self, error: KafkaError) -> None:
        """Log what the client waits for, once for each time that a broker is lost."""
        now_s = self._clock.monotonic_s()
        if self._is_closed or self._is_disturbed or not error.is_retriable or now_s - self._warned_s < WARNED_EVERY_S:
            return
        self._is_disturbed, self._warned_s = True, now_s
        logger.warning("%s. Trying again until it works", error)

    def _answer(self, machine: Machine, request: Request, response: Any, version: int) -> None:
        if self._is_closed:
            return
        self._is_disturbed = False
        if self.observer is not None:
            self.observer.answered(request, response, version)
        try:
            machine.answered(request, response, version, self.now_ms())
        except Exception as fault:
            name = APIS[request.message.KEY].name
            logger.exception("the answer to %s from node %d cannot be used: %s", name, request.node, fault)
            self._fail(machine, request, exception_of(-1, f"the broker's answer to {name} cannot be used: {fault}"))
        self.wake()

    def _fail(self, machine: Machine, request: Request, error: KafkaError) -> None:
        if self._is_closed:
            return
        if self.observer is not None:
            self.observer.failed(request, error)
        machine.failed(request, error, self.now_ms())
        self.wake()
