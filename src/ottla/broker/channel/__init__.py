"""How a broker reaches the active controller: in its own process, or over the network.

`ControllerChannel` is the contract between them: requests in, responses out, in Kafka's own messages. Everything that passes
it can cross a network, so a broker does the same whether the controller is in its process or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.channel.forwarded import ForwardedRequest


class ControllerChannel(Protocol):
    """Takes requests for the active controller."""

    async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
        """The response to a request of this broker itself, once its records are committed.

        Raises `KafkaError` if the controller refuses the request as a whole, or if none answers in time.
        """
        ...

    async def forward(self, request: ForwardedRequest, timeout_ms: int | None = None) -> Any:
        """The response to a client's request, in its version and with its principal, once its records are committed.

        Raises `KafkaError` if no controller answers in time. A refusal is a response, or a `KafkaError` too.
        """
        ...
