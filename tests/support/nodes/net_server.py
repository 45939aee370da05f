"""Listeners and a pipeline with handlers that a test controls, and a client that sends and receives frames.

`EchoServer` serves ApiVersions as the broker does, and three APIs differently:

- SaslHandshake returns the requested mechanism; `park NAME` is answered when the test completes `parked["NAME"]`, `raise` fails
  as a bug would, `refuse` as a request that is not allowed;
- Produce does the same by the name of the first topic, and has no response with acks=0;
- Metadata returns `metadata`, of any size.
"""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from tests.support.nodes.streams import Recorder

from ottla.broker.handlers.cluster import api_versions
from ottla.broker.net.listeners import Listeners
from ottla.broker.net.settings import NetSettings
from ottla.broker.requests.apis import ON_CONTROLLER
from ottla.broker.requests.context import CloseConnection, Handled, Pending, RequestContext
from ottla.broker.requests.pipeline import HandlerModule, RequestPipeline
from ottla.broker.services import Services
from ottla.config.listeners import Listener
from ottla.env import InlineWorkers, Network, Sendable, Stream, TlsOptions, World
from ottla.env.net import DEFAULT_OPTIONS, SocketOptions
from ottla.errors import BrokenInvariant, DecodeError, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.image.image import MetadataImage
from ottla.sim.loop import VirtualLoop
from ottla.wire.apis import ApiKey
from ottla.wire.base import Message
from ottla.wire.codec import decode_all
from ottla.wire.framing import FrameSplitter
from ottla.wire.headers import encode_request, read_response_header
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataResponse
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse, TopicProduceData, TopicProduceResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


class Waiting(Pending):
    """A reply that a test completes; `answer` is the response of an unparked request."""

    __slots__ = ("answer", "is_abandoned")

    def __init__(self, answer: Message | None) -> None:
        super().__init__()
        self.answer = answer
        self.is_abandoned = False

    def abandon(self) -> None:
        super().abandon()
        self.is_abandoned = True


class EchoServer:
    """A server, created inside a running loop. `asked` has the requests that reached the handlers, in order."""

    def __init__(self, network: Network, settings: NetSettings | None = None) -> None:
        image = MetadataImage(features={"metadata.version": 30})
        services = SimpleNamespace(
            metadata=SimpleNamespace(image=image, features_offset=-1),
            quorum=SimpleNamespace(kraft_version=1),
            settings=SimpleNamespace(current=SimpleNamespace(metrics_address=None, transaction_two_phase_commit_enable=False)),
        )
        self.asked: list[str] = []
        self.parked: dict[str, Waiting] = {}
        self.seconds_per_request = 0.0
        """How long a handler takes, in virtual time."""
        self.metadata = MetadataResponse()
        self.pipeline = RequestPipeline(cast(Services, services), self._load)
        world = cast(World, SimpleNamespace(network=network, compute=InlineWorkers(), return_memory=None))
        self.listeners = Listeners(world, settings if settings is not None else NetSettings(), self.pipeline)

    async def start(self, host: str = "127.0.0.1", names: Sequence[str] = ("PLAINTEXT",)) -> int:
        """Serve on `host`; returns the port of the first listener. CONTROLLER is the controller's, BROKERS the brokers'."""
        listeners = [Listener(name, host, 0, "PLAINTEXT") for name in names]
        bound = await self.listeners.open(listeners, ("CONTROLLER",), "BROKERS")
        self.listeners.serve()
        self.ports = {name: port for name, (_, port) in bound.items()}
        return self.ports[names[0]]

    def _load(self, api_key: int, on_controller: bool = False) -> HandlerModule | None:
        modules = {
            ApiKey.API_VERSIONS: api_versions,
            ApiKey.SASL_HANDSHAKE: SimpleNamespace(handle=self._shake, refuse=self._refuse_shake),
            ApiKey.PRODUCE: SimpleNamespace(handle=self._produce, refuse=self._refuse_produce),
            ApiKey.METADATA: SimpleNamespace(handle=lambda context, request: self.metadata, refuse=None),
        }
        is_served = not on_controller or api_key in ON_CONTROLLER
        return cast(HandlerModule | None, modules.get(api_key) if is_served else None)

    def _shake(self, context: RequestContext, request: SaslHandshakeRequest) -> Handled:
        return self._do(request.mechanism, SaslHandshakeResponse(mechanisms=[request.mechanism]))

    def _produce(self, context: RequestContext, request: ProduceRequest) -> Handled:
        name = request.topic_data[0].name
        return self._do(name, ProduceResponse(responses=[TopicProduceResponse(name=name)]) if request.acks else None)

    def _do(self, name: str, answer: Message | None) -> Handled:
        self.asked.append(name[:50])
        if self.seconds_per_request:
            cast(VirtualLoop, asyncio.get_running_loop()).spend(self.seconds_per_request)
        match name.partition(" "):
            case "park", _, key:
                while key in self.parked:
                    key += " again"
                self.parked[key] = Waiting(answer)
                return self.parked[key]
            case "refuse", _, _:
                raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, "not now")
            case "raise", _, _:
                raise ZeroDivisionError("a bug")
            case "close", _, _:
                raise CloseConnection("go away")
            case "decode", _, _:
                raise DecodeError("what is this")
            case "broken", _, _:
                raise BrokenInvariant("two and two are five")
            case "unwritable", _, _:
                return SaslHandshakeResponse(error_code=1 << 20)
            case _:
                return answer

    def _refuse_shake(self, context: RequestContext, request: Any, error: KafkaError) -> Message:
        if request.mechanism.endswith("twice"):
            raise ZeroDivisionError("another bug")
        return SaslHandshakeResponse(error_code=error.code)

    def _refuse_produce(self, context: RequestContext, request: Any, error: KafkaError) -> Message | None:
        if request.acks == 0:
            raise CloseConnection("acks=0")
        return ProduceResponse()


def shake(mechanism: str, correlation_id: int = 0, client_id: str | None = "tester") -> bytes:
    return b"".join(encode_request(SaslHandshakeRequest(mechanism=mechanism), 1, correlation_id, client_id))  # type: ignore[arg-type]


def produce(topic: str, correlation_id: int = 0, acks: int = -1, padding_bytes: int = 0) -> bytes:
    request = ProduceRequest(acks=acks, topic_data=[TopicProduceData(name=topic)])
    request.transactional_id = None
    frame = b"".join(encode_request(request, 3, correlation_id, "tester"))  # type: ignore[arg-type]
    return (len(frame) - 4 + padding_bytes).to_bytes(4, "big") + frame[4:] + bytes(padding_bytes)


def hello(correlation_id: int = 0) -> bytes:
    request = ApiVersionsRequest(client_software_name="tester", client_software_version="1")
    return b"".join(encode_request(request, 3, correlation_id, "tester"))  # type: ignore[arg-type]


def reply_to_shake(frame: bytes | bytearray) -> tuple[int, SaslHandshakeResponse]:
    """The correlation id and the response."""
    correlation_id, position = read_response_header(frame, ApiKey.SASL_HANDSHAKE, 1)
    return correlation_id, decode_all(SaslHandshakeResponse, 1, frame, position)


class FrameClient:
    """A client that sends bytes as they are and receives frames."""

    def __init__(self) -> None:
        self.owner = Recorder()
        self.stream: Stream
        self._splitter = FrameSplitter(1 << 30)
        self._taken = 0
        self._frames: list[bytearray] = []

    @classmethod
    async def connect(
        cls,
        network: Network,
        host: str,
        port: int,
        is_reading: bool = True,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> "FrameClient":
        client = cls()
        client.stream = await network.connect(host, port, client.owner, options, tls)
        if is_reading:
            client.stream.resume()
        return client

    def send(self, *parts: Sendable) -> None:
        self.stream.send(parts)

    async def frame(self, timeout_s: float = 60) -> bytearray:
        """The next frame."""
        await self.owner.until(self._has_frame, "another frame", timeout_s)
        return self._frames.pop(0)

    async def answers(self, count: int) -> list[tuple[int, list[str]]]:
        """Correlation ids and mechanisms of the next `count` responses to `shake`."""
        found = [reply_to_shake(await self.frame()) for _ in range(count)]
        return [(correlation_id, response.mechanisms) for correlation_id, response in found]

    async def silence(self, seconds: float = 0.2) -> None:
        """Check that nothing is received."""
        await asyncio.sleep(seconds)
        assert not self._has_frame()

    @property
    def is_over(self) -> bool:
        return "ended" in self.owner.events

    def _has_frame(self) -> bool:
        new = self.owner.data[self._taken :]
        self._taken += len(new)
        self._frames += self._splitter.feed(new)
        return bool(self._frames)
