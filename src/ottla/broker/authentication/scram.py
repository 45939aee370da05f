"""The server side of SCRAM (RFC 5802, RFC 7677) without IO.

    client-first  n,[a=authorization id],[m=…,]n=user,r=nonce[,name=value…]
    server-first  r=nonce+,s=salt,i=iterations
    client-final  c=channel binding,r=nonce+[,name=value…],p=proof
    server-final  v=signature

A client without channel binding alone is served, as in Kafka. User names are hashed as they came, without SASLprep. With the
extension `tokenauth=true`, user and password are id and HMAC of a delegation token.

A user that does not exist gets a salt, too, always the same one, and fails where a wrong password fails, after the same work.
Apache Kafka refuses it at the first message, which tells who exists.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from ottla.broker.authentication.exchange import LoggedIn, LoginFailed
from ottla.ids import Principal
from ottla.metadata.scram import ITERATIONS_MIN

_BASE64: Final = "[a-zA-Z0-9/+]*={0,2}"
_NAME: Final = r"(?:[^=,\0]|=2C|=3D)+"
_EXTENSIONS: Final = r"(?P<extensions>(?:,[A-Za-z]+=[^,\0]+)*)"
_CLIENT_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authorization_id>{_NAME}))?,)"
    rf"(?P<bare>(?:m=[^,\0]+,)?n=(?P<username>{_NAME}),r=(?P<nonce>[!-+\-.-~]+){_EXTENSIONS})"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<without_proof>c=(?P<binding>{_BASE64}),r=(?P<nonce>[!-+\-.-~]+){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
MESSAGE_BYTES_MAX: Final = 64 * 1024
"""Longer messages are refused before they are read."""


class Credential(NamedTuple):
    """What the node knows of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"Credential(iterations={self.iterations})"


class Account(NamedTuple):
    """Whom a user name stands for."""

    credential: Credential
    principal: Principal
    expires_ms: int | None = None


class Accounts(Protocol):
    """Who may log in with one SCRAM mechanism."""

    hash_name: str

    def account(self, username: str, is_token: bool) -> Account | None:
        """None: there is no such user or token, or it has no credential for this mechanism."""
        ...

    def prepare(self, username: str, is_token: bool) -> Callable[[], None] | None:
        """What must run before `account` finds this one, in a worker thread."""
        ...

    def decoy(self, username: str) -> Credential:
        """The credential of a user that does not exist, always the same for a name. No proof is right for it."""
        ...


class ScramExchange:
    """One login. `nonce` is the server's part, without commas."""

    __slots__ = ("_accounts", "_expected_nonce", "_found", "_header", "_nonce", "_signed", "_used", "username")

    def __init__(self, accounts: Accounts, nonce: str) -> None:
        self._accounts = accounts
        self._nonce = nonce
        self._found: Account | None = None
        self._used: Credential | None = None
        """The credential, or the decoy; set once the first message has come."""
        self._header = ""
        self._signed = ""
        self._expected_nonce = ""
        self.username = ""

    def prepare(self, message: bytes) -> Callable[[], None] | None:
        if self._used is not None:
            return None
        first = _CLIENT_FIRST.fullmatch(_text(message))
        return None if first is None else self._accounts.prepare(_unescaped(first["username"]), _is_token(first["extensions"]))

    def step(self, message: bytes) -> tuple[bytes, LoggedIn | None]:
        return (self._first(message), None) if self._used is None else self._final(message)

    def _first(self, message: bytes) -> bytes:
        first = _CLIENT_FIRST.fullmatch(_text(message))
        if first is None:
            raise LoginFailed("its first message is no SCRAM message without channel binding")
        self.username = _unescaped(first["username"])
        authorization_id = _unescaped(first["authorization_id"] or "")
        found = self._accounts.account(self.username, _is_token(first["extensions"]))
        if found is not None and found.credential.iterations < ITERATIONS_MIN:
            found = None
        if found is not None and authorization_id not in ("", self.username):
            text = "the authorization id must be empty or the user name"
            raise LoginFailed(text, f"Authentication failed: {text}")
        self._found = found
        decoy = self._accounts.decoy(self.username)  # made for everybody: the time must not tell who exists
        self._used = used = decoy if found is None else found.credential
        self._header = first["header"]
        self._expected_nonce = first["nonce"] + self._nonce
        answer = f"r={self._expected_nonce},s={b64encode(used.salt).decode()},i={used.iterations}"
        self._signed = f"{first['bare']},{answer}"
        return answer.encode()

    def _final(self, message: bytes) -> tuple[bytes, LoggedIn | None]:
        used = self._used
        assert used is not None, "the first message has come"
        final = _CLIENT_FINAL.fullmatch(_text(message))
        if final is None:
            raise LoginFailed("its second message is no SCRAM message")
        if not hmac.compare_digest(final["nonce"].encode(), self._expected_nonce.encode()):
            raise LoginFailed("its second message has another nonce: it may be replayed")
        if b64encode(self._header.encode()).decode() != final["binding"]:
            raise LoginFailed("its second message has another header than the first")
        signed = f"{self._signed},{final['without_proof']}".encode()
        hash_name = self._accounts.hash_name
        try:
            proof = b64decode(final["proof"], validate=True)
        except ValueError:
            raise LoginFailed("its proof is not Base64") from None
        client_signature = hmac.digest(used.stored_key, signed, hash_name)
        client_key = bytes(one ^ other for one, other in zip(client_signature, proof, strict=False))
        is_right = hmac.compare_digest(hashlib.new(hash_name, client_key).digest(), used.stored_key)
        server_signature = hmac.digest(used.server_key, signed, hash_name)
        if self._found is None:
            raise LoginFailed("there is no such user, or it has no credential for this mechanism")
        if not is_right or len(proof) != len(client_signature):
            raise LoginFailed("the password is wrong")
        return b"v=" + b64encode(server_signature), LoggedIn(self._found.principal, self._found.expires_ms)


def _text(message: bytes) -> str:
    try:
        return message.decode() if len(message) <= MESSAGE_BYTES_MAX else ""
    except UnicodeDecodeError:
        return ""


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _is_token(extensions: str) -> bool:
    pairs = (part.partition("=") for part in extensions.split(","))
    return any(name == "tokenauth" and value.lower() == "true" for name, _, value in pairs)
