"""The client side of the protocol on one connection, without IO: requests to bytes, bytes to answers.

It begins with ApiVersions in our newest version. A node that does not know that version answers with a version 0 body that
lists its versions, and gets a second ApiVersions request in one of those. After that, answers must come in the order
in which requests were sent, as the protocol demands. Anything else is a `PeerFault`, after which the
conversation cannot be used.

    NEW ──greet──▶ GREETING ──versions──▶ OPEN ──fault──▶ OVER
                    │  ▲ └───────fault──────────────────────▲
                    └──┘ once: an older ApiVersions
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from ottla.errors import DecodeError
from ottla.errors.codes import ErrorCode, error_meaning, error_name
from ottla.link.errors import PeerFault
from ottla.link.versions import PeerVersions, speakable
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message, Part
from ottla.wire.codec import decode, decoder
from ottla.wire.framing import FrameSplitter
from ottla.wire.headers import encode_request, read_response_header
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_NAME: Final = "ottla"
_CORRELATION_ID_MASK: Final = 0x7FFFFFFF
_SIGNS_OF_OTHERS: Final = (
    (b"HTTP", "It speaks HTTP: it is a web server or a metrics port. Give the port of a Kafka listener"),
    (b"\x15\x03", "It speaks TLS: set security.protocol to SSL or SASL_SSL, or give the port of a PLAINTEXT listener"),
    (b"SSH-", "It is an SSH server"),
    (b"220 ", "It is a mail or file server"),
)


class State(Enum):
    """The states of a conversation; the module's docstring has the diagram."""

    NEW = "new"
    GREETING = "greeting"
    OPEN = "open"
    OVER = "over"


class Greeted(NamedTuple):
    """The peer has sent its versions: requests may follow."""

    versions: PeerVersions


class SendAlso(NamedTuple):
    """Bytes that the owner must send for the conversation itself."""

    parts: Sequence[Part]


class Expected(NamedTuple):
    """A request that gets an answer."""

    correlation_id: int
    api_key: int
    version: int


class Answer(NamedTuple):
    """The answer to `request`."""

    request: Expected
    message: Any


Event = Greeted | SendAlso | Answer


class Conversation:
    """The protocol state of one connection. Its owner sends and receives the bytes."""

    __slots__ = ("_client_id", "_expected", "_next_id", "_software_version", "_splitter", "address", "state", "versions")

    def __init__(self, address: str, client_id: str | None, software_version: str, answer_bytes_max: int) -> None:
        self.address = address
        self.state = State.NEW
        self.versions: PeerVersions | None = None
        self._client_id = client_id
        self._software_version = software_version
        self._splitter = FrameSplitter(answer_bytes_max, reuses=True)
        self._expected: deque[Expected] = deque()
        self._next_id = 0

    def greet(self) -> list[Part]:
        """The first bytes to send."""
        self.state = State.GREETING
        return self._greeting(speakable(ApiKey.API_VERSIONS)[1])

    def ask(self, message: Message, version: int | None = None) -> tuple[Expected, list[Part]]:
        """A request and its bytes. Call `sent` when they are sent. A message that cannot be encoded changes nothing."""
        chosen = self._version(message.KEY, version)
        correlation_id = self._next_id
        parts = encode_request(message, chosen, correlation_id, self._client_id)
        self._next_id = (correlation_id + 1) & _CORRELATION_ID_MASK
        return Expected(correlation_id, message.KEY, chosen), parts

    def sent(self, request: Expected) -> None:
        """The bytes of `request` are sent: its answer is expected after those of the requests sent before."""
        self._expected.append(request)

    def ask_unanswered(self, message: Message, version: int | None = None) -> list[Part]:
        """The bytes of a request that is not answered: Produce with acks=0."""
        parts = encode_request(message, self._version(message.KEY, version), self._next_id, self._client_id)
        self._next_id = (self._next_id + 1) & _CORRELATION_ID_MASK
        return parts

    def buffer(self) -> memoryview:
        """The buffer for the next bytes from the peer; never empty."""
        return self._splitter.writable()

    def received(self, count: int) -> list[Event]:
        """The events from `count` bytes written to the buffer. A `PeerFault` ends the conversation."""
        first = bytes(self._splitter.writable()[: min(count, 8)]) if self.state is State.GREETING else b""
        try:
            return [self._take(frame) for frame in self._splitter.received(count)]
        except PeerFault:
            self.state = State.OVER
            raise
        except DecodeError as fault:
            self.state = State.OVER
            sign = next((says for sign, says in _SIGNS_OF_OTHERS if first.startswith(sign)), None)
            raise PeerFault(self.address, f"{self.address} does not answer as a Kafka node does. {sign or fault}") from None

    def end_text(self, is_encrypted: bool) -> str:
        """The error text for a connection that the peer has just closed."""
        if self.state is State.GREETING:
            advice = "that it accepts our certificate" if is_encrypted else "one without TLS (else set security.protocol)"
            return (
                f"{self.address} closed the connection before it sent its versions: check that it is a Kafka listener (not a "
                f"metrics port), and {advice}"
            )
        cut = "" if self._splitter.is_between_frames else " in the middle of an answer"
        return f"{self.address} closed the connection{cut}; its log may say why"

    def _version(self, api_key: int, version: int | None) -> int:
        if self.versions is None or self.state is not State.OPEN:
            raise RuntimeError(f"the conversation with {self.address} is {self.state.value}: no request can be sent")
        return self.versions.newest(api_key) if version is None else version

    def _greeting(self, version: int) -> list[Part]:
        message = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=self._software_version)
        correlation_id = self._next_id
        self._expected.append(Expected(correlation_id, ApiKey.API_VERSIONS, version))
        self._next_id = correlation_id + 1
        return encode_request(message, version, correlation_id, self._client_id)

    def _take(self, frame: bytearray) -> Event:
        if not self._expected:
            raise PeerFault(self.address, f"{self.address} sent {len(frame)} bytes without a request")
        expected = self._expected[0]
        correlation_id, body = read_response_header(frame, expected.api_key, expected.version)
        if correlation_id != expected.correlation_id:
            raise PeerFault(
                self.address,
                f"{self.address} answered request {correlation_id} where {expected.correlation_id} "
                f"({APIS[expected.api_key].name}) was next: answers must come in order",
            )
        self._expected.popleft()
        if self.state is State.GREETING:
            return self._greeted(frame, body, expected.version)
        message, _ = decoder(APIS[expected.api_key].response_class, expected.version)(frame, body)
        return Answer(expected, message)

    def _greeted(self, frame: bytearray, body: int, version: int) -> Event:
        refused = int.from_bytes(frame[body : body + 2], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION
        response, _ = decode(ApiVersionsResponse, 0 if refused else version, frame, body)
        if refused and version > 0:
            return SendAlso(self._greeting(self._older_greeting(response, version)))
        if response.error_code:
            raise PeerFault(
                self.address,
                f"{self.address} refused to send its versions: {error_name(response.error_code)}. "
                f"{error_meaning(response.error_code)}",
            )
        features = {each.name: each.max_version_level for each in response.finalized_features}
        self.versions = PeerVersions(self.address, response.api_keys, features, response.finalized_features_epoch)
        self.state = State.OPEN
        return Greeted(self.versions)

    def _older_greeting(self, response: ApiVersionsResponse, refused: int) -> int:
        """The version for the second ApiVersions request: the newest that the peer lists, else 0, which every node has."""
        served = next((each for each in response.api_keys if each.api_key == ApiKey.API_VERSIONS), None)
        return max(0, min(served.max_version, refused - 1)) if served is not None else 0
