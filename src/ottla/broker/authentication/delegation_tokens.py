"""Delegation tokens as credentials: the HMAC that is a token's password, and the SCRAM credentials made of it.

The metadata log has a token's id, owner and times, never its HMAC: every node makes that with delegation.token.secret.key. Its
SCRAM credentials take milliseconds, so they are made in a worker thread when the token is first used here, and kept.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ottla.broker.authentication.scram import Credential
from ottla.ids import Principal
from ottla.metadata.scram import HASH_NAMES, ITERATIONS_MIN, keys_of, salted_password

KEPT_MAX: Final = 10_000
"""So many credentials are kept; the one that was not used for longest is dropped."""


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """The HMAC of a token."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def principal_of(text: str) -> Principal:
    """The principal in a token's record, such as `User:alice`."""
    type_, _, name = text.partition(":")
    return Principal(type_, name)


class TokenCredentials:
    """The SCRAM credentials of tokens, for one node."""

    def __init__(self, secret_key: str | None, new_salt: Callable[[], bytes]) -> None:
        self._secret_key = secret_key
        self._new_salt = new_salt
        self._kept: OrderedDict[tuple[str, int], Credential] = OrderedDict()

    def __repr__(self) -> str:
        return f"TokenCredentials({len(self._kept)} kept)"

    def get(self, token_id: str, mechanism: int) -> Credential | None:
        """The credential of a token for a mechanism, by its number; None if it has to be made first."""
        found = self._kept.get((token_id, mechanism))
        if found is not None:
            self._kept.move_to_end((token_id, mechanism))
        return found

    def maker(self, token_id: str, mechanism: int) -> Callable[[], None] | None:
        """What makes the credential, in a worker thread; None if it is made, or if tokens are not switched on."""
        secret_key = self._secret_key
        if secret_key is None or (token_id, mechanism) in self._kept:
            return None
        salt, hash_name = self._new_salt(), HASH_NAMES[mechanism]

        def make() -> None:
            password = b64encode(token_hmac(secret_key, token_id))
            keys = keys_of(hash_name, salted_password(hash_name, password, salt, ITERATIONS_MIN))
            if len(self._kept) >= KEPT_MAX:
                self._kept.popitem(last=False)
            self._kept[token_id, mechanism] = Credential(salt, keys.stored_key, keys.server_key, ITERATIONS_MIN)

        return make
