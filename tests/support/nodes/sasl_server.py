"""The server side of SASL for tests: SCRAM by the book, and handlers for a `FakeNode` that wants a login.

node = FakeNode({**SaslServer("PLAIN", {"alice": "secret"}).handlers(), MetadataRequest: ...})
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from ottla.wire.base import Message
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

UNSUPPORTED_MECHANISM, ILLEGAL_STATE, FAILED = 33, 34, 58


class ScramServer:
    """One login of one user, as RFC 5802 describes the server. Raises `ValueError` if the client's proof is wrong."""

    def __init__(self, hash_name: str, password: str, iterations: int = 4096, nonce: str = "3rfcNHYJY1ZVvWVs7j") -> None:
        self.hash_name = hash_name
        self.iterations = iterations
        self.nonce = nonce
        self.salt = b"sixteen bytes of"
        self._salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), self.salt, iterations)
        self._signed = ""
        self.username = ""

    def first(self, client_first: bytes) -> bytes:
        bare = client_first.decode().removeprefix("n,,")
        fields = dict(part.split("=", 1) for part in bare.split(","))
        self.username = fields["n"].replace("=2C", ",").replace("=3D", "=")
        answer = f"r={fields['r']}{self.nonce},s={b64encode(self.salt).decode()},i={self.iterations}"
        self._signed = f"{bare},{answer}"
        return answer.encode()

    def final(self, client_final: bytes) -> bytes:
        without_proof, _, proof = client_final.decode().rpartition(",p=")
        signed = f"{self._signed},{without_proof}".encode()
        client_key = self._hmac(self._salted, b"Client Key")
        signature = self._hmac(hashlib.new(self.hash_name, client_key).digest(), signed)
        if bytes(a ^ b for a, b in zip(client_key, signature, strict=True)) != b64decode(proof):
            raise ValueError("the proof is wrong")
        return b"v=" + b64encode(self._hmac(self._hmac(self._salted, b"Server Key"), signed))

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.hash_name)


class SaslServer:
    """What a node with one mechanism answers. `log` has what happened: mechanism names, user names, failures."""

    def __init__(self, mechanism: str, users: Mapping[str, str], session_ms: int = 0) -> None:
        self.mechanism = mechanism
        self.users = dict(users)
        self.session_ms = session_ms
        self.log: list[str] = []
        self._scram: ScramServer | None = None

    def handlers(self) -> dict[type[Message], Any]:
        return {SaslHandshakeRequest: self.handshake, SaslAuthenticateRequest: self.authenticate}

    def handshake(self, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
        self.log.append(request.mechanism)
        self._scram = None
        code = 0 if request.mechanism == self.mechanism else UNSUPPORTED_MECHANISM
        return SaslHandshakeResponse(error_code=code, mechanisms=[self.mechanism])

    def authenticate(self, request: SaslAuthenticateRequest, version: int) -> object:
        answer = self._answer(bytes(request.auth_bytes))
        if answer is None:
            return SaslAuthenticateResponse(error_code=FAILED, error_message="Authentication failed: invalid credentials.")
        return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=self.session_ms if version > 0 else 0)

    def _answer(self, said: bytes) -> bytes | None:
        if self.mechanism == "PLAIN":
            _, user, password = said.decode().split("\0")
            self.log.append(user)
            return b"" if self.users.get(user) == password else None
        if self.mechanism == "OAUTHBEARER":
            if said == b"\x01":
                return None
            self.log.append(said.decode())
            return (
                b""
                if said.decode().split("\x01")[1].removeprefix("auth=Bearer ") in self.users
                else b'{"status":"invalid_token"}'
            )
        if self._scram is None:
            name = said.decode().split("n=", 1)[1].split(",")[0]
            self._scram = ScramServer(self.mechanism.replace("SCRAM-SHA-", "sha"), self.users.get(name, "?"))
            answer = self._scram.first(said)
            self.log.append(self._scram.username)
            return answer
        try:
            return self._scram.final(said)
        except ValueError:
            return None
