"""`RemoteChannel`: the channel to the active controller, wherever it is.

Asks this node's own controller while it is the active one, else the quorum's leader over the network. A client's request
travels in an Envelope. While no controller answers (NOT_CONTROLLER, no leader known, a lost connection), the request is sent
again after a short pause, until its timeout. It is also sent again when another controller is elected while it waits: a node
that lost its power answers nothing, and its connections do not end. As in Kafka, a request whose connection was lost may be
executed twice: the second execution finds what the first one did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.channel.envelope import unwrap_response, wrap_request
from ottla.broker.channel.forwarded import ForwardedRequest, answer_forwarded
from ottla.broker.channel.links import Address, ControllerLinks
from ottla.errors import DecodeError, KafkaError
from ottla.errors.codes import ErrorCode, error_meaning, error_name
from ottla.link import ConnectFailed, LinkEnded, LinkError, NoCommonVersion
from ottla.metadata.controller.decision import Asker
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.services import NodeServices

READS: Final = frozenset({ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_QUORUM})
"""The forwardable APIs that change nothing."""
BACKOFF_MS: Final = 50
WATCH_S: Final = 0.1
"""How often a request that waits for its answer looks whether another controller is elected."""
_UNKNOWN_EFFECT: Final = "It may still take effect: look before asking again"
_MAJORITY: Final = "see that a majority of the controllers is up"
_NONE_KNOWN: Final = "no controller is known"
TIMEOUT_MS: Final = 60_000
"""How long a request without a timeout of its own is tried."""
FORWARD_TIMEOUT_MS: Final = 25_000
"""The same for a client's: its request.timeout.ms is 30 s by default, and an answer that it can retry on must come before."""


class RemoteChannel:
    """`leader` returns the address of the quorum's leader, or None; `own` are this node's services if it is a controller."""

    def __init__(self, links: ControllerLinks, leader: Callable[[], Address | None], own: NodeServices | None = None) -> None:
        self._links = links
        self._leader = leader
        self._own = own

    async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
        async def decide(own: NodeServices) -> Any:
            return await own.controller.call(request, Asker(APIS[request.KEY].newest))

        response = await self._ask(request.KEY, decide, lambda: request, timeout_ms)
        code = getattr(response, "error_code", ErrorCode.NONE)
        if code != ErrorCode.NONE:
            why = getattr(response, "error_message", None) or error_meaning(code)
            raise KafkaError(code, f"the controller refused {APIS[request.KEY].name}: {error_name(code)}. {why}")
        return response

    async def forward(self, request: ForwardedRequest, timeout_ms: int | None = None) -> Any:
        async def decide(own: NodeServices) -> Any:
            return await answer_forwarded(own, request)

        limit_ms, key = FORWARD_TIMEOUT_MS if timeout_ms is None else timeout_ms, request.message.KEY
        response = await self._ask(key, decide, lambda: wrap_request(request), limit_ms)
        if key == response.KEY:
            return response  # of this node's own controller
        if response.error_code != ErrorCode.NONE:
            raise KafkaError(
                response.error_code,
                f"the controller does not take {APIS[key].name} from this broker: {error_name(response.error_code)}. "
                f"{error_meaning(response.error_code)}",
            )
        try:
            return unwrap_response(request, response)
        except DecodeError as damage:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the controller's response cannot be read: {damage}") from damage

    async def _ask(
        self,
        api_key: int,
        decide: Callable[[NodeServices], Awaitable[Any]],
        outgoing: Callable[[], Message],
        timeout_ms: int | None,
    ) -> Any:
        """The response of the active controller: what `decide` returns if it is this node's, else that to `outgoing()`."""
        loop = asyncio.get_running_loop()
        limit_ms = TIMEOUT_MS if timeout_ms is None else timeout_ms
        deadline_s = loop.time() + limit_ms / 1000
        reason: object = _NONE_KNOWN
        is_received = False
        """Whether a controller may have received the request."""
        while (left_ms := int((deadline_s - loop.time()) * 1000)) > 0:
            try:
                if self._own is not None and self._own.controller.is_active:
                    is_received = True
                    async with asyncio.timeout(left_ms / 1000):
                        return await decide(self._own)
                address = self._leader()
                if address is not None and not (self._own is not None and address.node_id == self._own.node_id):
                    response = await self._answer_of(address, outgoing(), left_ms)
                    is_received = True
                    if getattr(response, "error_code", ErrorCode.NONE) != ErrorCode.NOT_CONTROLLER:
                        return response
                    reason = f"node {address.node_id} is not the active controller"
                elif address is None and not is_received:
                    reason = _NONE_KNOWN
            except NoCommonVersion as unspoken:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(unspoken)) from None
            except TimeoutError:
                reason = "this node's controller has not committed it: too few voters are up"
            except LinkError as failed:
                reason = failed
                is_received = is_received or not isinstance(failed, ConnectFailed)
            except KafkaError as refused:
                if refused.code != ErrorCode.NOT_CONTROLLER:
                    raise
                reason = refused
            await asyncio.sleep(BACKOFF_MS / 1000)
        said = f"no controller has answered {APIS[api_key].name} within {limit_ms} ms ({reason})"
        if api_key in READS:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"{said}: {_MAJORITY}")
        effect = _UNKNOWN_EFFECT if is_received else f"Nothing was changed: {_MAJORITY}"
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"{said}. {effect}")

    async def _answer_of(self, address: Address, request: Message, timeout_ms: int) -> Any:
        """The answer of the controller at `address`. Raises `LinkEnded` once another is known to be elected."""
        asking = asyncio.ensure_future(self._links.ask(address, request, timeout_ms))
        try:
            while not (await asyncio.wait({asking}, timeout=WATCH_S))[0]:
                if self._leader() not in (None, address):
                    text = f"node {address.node_id} has not answered, and another controller is elected since"
                    raise LinkEnded(f"{address.host}:{address.port}", text)
            return asking.result()
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking})
