"""The SCRAM accounts of a node: users and delegation tokens of the metadata image.

`decoy` makes the salts of users that do not exist: from the server key of the first user, which is the same on every node and
which nobody outside knows. It looks like that user's salt. Pure, but for the cache of tokens' credentials.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Final

from ottla.broker.authentication.scram import Account, Credential
from ottla.broker.authentication.token_credentials import TokenCredentials
from ottla.ids import Principal
from ottla.metadata.delegation_tokens import principal_of
from ottla.metadata.image.security import CredentialKey, SecurityImage
from ottla.metadata.scram import ITERATIONS_MIN, MECHANISMS
from ottla.wire.messages.metadata_records import UserScramCredentialRecord

_DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"


class ScramAccounts:
    """`Accounts` of one mechanism. `security` returns the newest image."""

    def __init__(self, mechanism: str, security: Callable[[], SecurityImage], tokens: TokenCredentials) -> None:
        self._number, self.hash_name = MECHANISMS[mechanism]
        self._security = security
        self._tokens = tokens
        self._model_of: Mapping[CredentialKey, UserScramCredentialRecord] | None = None
        self._model: UserScramCredentialRecord | None = None

    def account(self, username: str, is_token: bool) -> Account | None:
        security = self._security()
        if is_token:
            token = security.tokens.get(username)
            credential = self._tokens.get(username, self._number)
            if token is None or credential is None:
                return None
            return Account(
                credential, principal_of(token.owner)._replace(is_token_authenticated=True), token.expiration_timestamp
            )
        record = security.credentials.get((username, self._number))
        return None if record is None else Account(_credential(record), Principal("User", username))

    def prepare(self, username: str, is_token: bool) -> Callable[[], None] | None:
        return self._tokens.maker(username, self._number) if is_token and username in self._security().tokens else None

    def decoy(self, username: str) -> Credential:
        model = self._find_model()
        secret, shape = (b"", b"0" * 26) if model is None else (model.server_key, model.salt)
        raw = hmac.digest(secret, username.encode(), "sha512")
        while len(raw) < len(shape):
            raw += hmac.digest(secret, raw, "sha512")
        salt = raw[: len(shape)]
        if all(byte in _DIGITS for byte in shape):
            salt = bytes(_DIGITS[byte % len(_DIGITS)] for byte in salt)
        nothing = hashlib.new(self.hash_name, raw).digest()
        return Credential(salt, nothing, nothing, ITERATIONS_MIN if model is None else model.iterations)

    def _find_model(self) -> UserScramCredentialRecord | None:
        credentials = self._security().credentials
        if credentials is not self._model_of:
            self._model_of = credentials
            self._model = next((record for (_, number), record in credentials.items() if number == self._number), None)
        return self._model


def _credential(record: UserScramCredentialRecord) -> Credential:
    return Credential(record.salt, record.stored_key, record.server_key, record.iterations)
