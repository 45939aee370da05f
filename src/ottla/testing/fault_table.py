"""Fault injection, the node's side: which faults meet a request, and how it is then handled.

All faults that fit a request apply, in the order they were added: delays add up, and errors of different partitions are
combined. Of drop, hang and lost reply only the first applies. Requests of the test's own helpers are not affected. Runs on the
node's event loop.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final, NamedTuple

from ottla.broker.net.listeners import Listeners
from ottla.broker.requests.context import RequestContext
from ottla.broker.requests.interception import Interception
from ottla.broker.requests.topics import is_about
from ottla.errors import KafkaError
from ottla.errors.codes import error_name
from ottla.errors.texts import counted
from ottla.testing import fault_rules
from ottla.testing.errors import NotRunning
from ottla.testing.fault_answers import Failure, fail_parts
from ottla.testing.fault_rules import HELPER_CLIENT_ID, FaultRule
from ottla.testing.faults import describe
from ottla.testing.logs import stamp
from ottla.testing.request_trace import details
from ottla.wire.apis import APIS
from ottla.wire.base import Message

FOREVER_S: Final = 10 * 365 * 24 * 3600.0
HELD_KEPT: Final = 20
"""Of each fault the last requests that it held."""


class HeldRequest(NamedTuple):
    """A request that a delay or a hang keeps from being handled."""

    what: str
    connection_id: int
    since: float
    until_s: float


class ActiveFault:
    """One added fault, how often it was met, and the requests that it holds."""

    __slots__ = ("held", "hits", "rule")

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self.hits = 0
        self.held: list[HeldRequest] = []

    @property
    def is_spent(self) -> bool:
        return self.rule.times is not None and self.hits >= self.rule.times

    def fits(self, context: RequestContext, request: Message) -> bool:
        rule = self.rule
        return (
            not self.is_spent
            and rule.api_key in (None, context.api_key)
            and rule.client_id in (None, context.client_id)
            and (rule.topic is None or is_about(context, request, rule.topic, rule.partition))
        )


class FaultTable:
    """The faults of one node."""

    def __init__(self, listeners: Listeners) -> None:
        self._listeners = listeners
        self._faults: dict[int, ActiveFault] = {}
        self._hits_of_removed: dict[int, int] = {}
        """Fault id → hits, of faults removed during this run of the node."""
        self._removed: list[ActiveFault] = []
        """Removed faults, which may still hold requests."""
        self._helper_connections: set[int] = set()
        self._held_until_s: dict[int, float] = {}
        """Connection → when its last delayed request is handled."""
        self._hit = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    # Commands of the test

    async def command(self, name: str, values: dict[str, Any]) -> Any:
        """Run one of `watch`, `add`, `remove`, `clear`, `hits`, `await_hits`."""
        match name:
            case "watch":
                return None  # creates the table: from now on it learns the helpers' connections from their requests
            case "add":
                return self.add(values["id"], FaultRule(*values["rule"]))
            case "remove":
                return self.remove(values["id"])
            case "clear":
                return self.clear()
            case "hits":
                return self.hits(values["id"])
            case "await_hits":
                return await self.await_hits(values["id"], values["count"], values["timeout_s"])
        raise ValueError(f"there is no command {name}")

    def add(self, fault_id: int, rule: FaultRule) -> None:
        self._faults[fault_id] = ActiveFault(rule)
        if rule.kind == fault_rules.REFUSE_CONNECTIONS:
            self._update_refusing()
            for connection in self._listeners.connections:
                if connection.info.id not in self._helper_connections and not connection.info.is_controller_listener:
                    connection.stream.close()

    def remove(self, fault_id: int) -> None:
        fault = self._faults.pop(fault_id, None)
        if fault is not None:
            self._hits_of_removed[fault_id] = fault.hits
            self._removed.append(fault)
        self._update_refusing()

    def clear(self) -> None:
        for fault_id in list(self._faults):
            self.remove(fault_id)

    def hits(self, fault_id: int) -> int:
        """How often a fault was met; `NotRunning` if it was added before the broker was restarted."""
        fault = self._faults.get(fault_id)
        if fault is not None:
            return fault.hits
        if fault_id in self._hits_of_removed:
            return self._hits_of_removed[fault_id]
        raise NotRunning("the fault was forgotten when the broker was stopped: look at its hits before that")

    async def await_hits(self, fault_id: int, count: int, timeout_s: float) -> int:
        """Wait until the fault was met `count` times, at most `timeout_s`; returns how often it was met."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.hits(fault_id) < count:
                    await self._hit.wait()
        except TimeoutError:
            pass
        return self.hits(fault_id)

    def _update_refusing(self) -> None:
        is_refusing = any(fault.rule.kind == fault_rules.REFUSE_CONNECTIONS for fault in self._faults.values())
        if is_refusing and not self._listeners.is_refusing:
            self._listeners.on_refused = self._refused
        self._listeners.is_refusing = is_refusing

    def close_stuck(self) -> None:
        """Close the connections with delayed requests, so that a stop does not wait for them."""
        now_s = self._loop.time()
        for connection in self._listeners.connections:
            if self._held_until_s.get(connection.info.id, 0.0) > now_s:
                connection.stream.close()

    def report(self) -> list[str]:
        """The faults in words, for a failed test: which are active, how often each was met, what each holds."""
        lines = []
        for fault in (*self._faults.values(), *self._removed):
            held = [line for each in fault.held if (line := self._held_line(each)) is not None]
            is_active = any(fault is each for each in self._faults.values())
            if is_active or held:
                met = "has met no request" if not fault.hits else f"has met {counted(fault.hits, 'request')}"
                lines += [f"{describe(fault.rule)} {met}{'' if is_active else ', and was removed'}", *held]
        return lines

    def _held_line(self, held: HeldRequest) -> str | None:
        """A request that is held still, or that its client has given up; None if it was handled."""
        if held.until_s <= self._loop.time():
            return None
        is_open = any(each.info.id == held.connection_id for each in self._listeners.connections)
        state = f"for {time.time() - held.since:.1f} s now" if is_open else "until its client closed the connection"
        return f"  holds {held.what}, since {stamp(held.since)}, {state}"

    # Requests

    def _refused(self) -> None:
        for fault in self._faults.values():
            if fault.rule.kind == fault_rules.REFUSE_CONNECTIONS:
                self._met(fault)

    def _met(self, fault: ActiveFault) -> None:
        fault.hits += 1
        self._hit.set()
        self._hit = asyncio.Event()

    def intercept(self, context: RequestContext, request: Message) -> Interception | None:
        """`RequestPipeline.intercept`."""
        if context.client_id == HELPER_CLIENT_ID:
            self._helper_connections.add(context.connection.id)
            return None
        if not self._faults:
            return None
        met = [fault for fault in self._faults.values() if fault.fits(context, request)]
        if not met:
            return None
        for fault in met:
            self._met(fault)
        interception = _interception(context, request, [fault.rule for fault in met])
        if interception.delay_s:
            until_s = self._loop.time() + interception.delay_s
            held = HeldRequest(_words(context, request), context.connection.id, time.time(), until_s)
            for fault in met:
                if fault.rule.kind in (fault_rules.DELAY, fault_rules.HANG):
                    fault.held.append(held)
                    del fault.held[:-HELD_KEPT]
            self._held_until_s[context.connection.id] = max(until_s, self._held_until_s.get(context.connection.id, 0.0))
        return interception


def _words(context: RequestContext, request: Message) -> str:
    host, port = context.connection.peer
    words = [f"{APIS[context.api_key].name} version {context.version}", *details(context, request)]
    return f"{' '.join(words)} from {context.client_id or 'a client without id'} ({host}:{port})"


def _interception(context: RequestContext, request: Message, rules: list[FaultRule]) -> Interception:
    delay_s = sum(rule.delay_s for rule in rules if rule.kind == fault_rules.DELAY)
    fatal = next((rule.kind for rule in rules if rule.kind not in (fault_rules.DELAY, fault_rules.FAIL)), None)
    match fatal:
        case fault_rules.HANG:
            return Interception(delay_s=FOREVER_S, is_handled=False, is_lost=True)
        case fault_rules.DROP:
            return Interception(delay_s=delay_s, is_handled=False, is_lost=True)
        case fault_rules.LOSE_REPLY:
            return Interception(delay_s=delay_s, is_lost=True)
    failures = [
        Failure(rule.topic, rule.partition, KafkaError(rule.error_code, f"a test asked for {error_name(rule.error_code)}"))
        for rule in rules
        if rule.kind == fault_rules.FAIL
    ]
    if not failures:
        return Interception(delay_s=delay_s)
    return fail_parts(context, request, failures, delay_s)
