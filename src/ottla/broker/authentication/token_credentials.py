"""The SCRAM credentials of delegation tokens, whose password is their HMAC (`metadata/delegation_tokens.py`).

Making one takes milliseconds, so it is done in a worker thread when the token is first used on this node, and kept.
"""

from __future__ import annotations

from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ottla.broker.authentication.scram import Credential
from ottla.metadata.delegation_tokens import token_hmac
from ottla.metadata.scram import HASH_NAMES, ITERATIONS_MIN, keys_of, salted_password

KEPT_MAX: Final = 10_000
"""So many credentials are kept; the one that was not used for longest is dropped."""


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
