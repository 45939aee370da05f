"""The SCRAM accounts of a node: users and delegation tokens of the metadata image.

While a node knows no metadata, `OwnAccount` stands in for the user as which nodes log in: controllers need each other's votes
before they can read a log with credentials, at the first start and after all of them were stopped.

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
from ottla.metadata.scram import ITERATIONS_MIN, MECHANISMS, keys_of, salted_password
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


class OwnAccount:
    """`Accounts` of a listener at which this node logs in on other nodes, as the user that its JAAS text names.

    `has_metadata` says whether the metadata is there: then it alone counts.
    """

    def __init__(
        self, accounts: ScramAccounts, username: str, password: str, salt: bytes, has_metadata: Callable[[], bool]
    ) -> None:
        self._accounts = accounts
        self.hash_name = accounts.hash_name
        self._username = username
        self._password = password
        self._salt = salt
        self._has_metadata = has_metadata
        self._credential: Credential | None = None

    def __repr__(self) -> str:
        return f"OwnAccount({self._username!r})"

    def account(self, username: str, is_token: bool) -> Account | None:
        if self._stands_in(username, is_token) and self._credential is not None:
            return Account(self._credential, Principal("User", username))
        return self._accounts.account(username, is_token)

    def prepare(self, username: str, is_token: bool) -> Callable[[], None] | None:
        if self._stands_in(username, is_token):
            return self._make if self._credential is None else None
        return self._accounts.prepare(username, is_token)

    def decoy(self, username: str) -> Credential:
        return self._accounts.decoy(username)

    def _stands_in(self, username: str, is_token: bool) -> bool:
        return username == self._username and not is_token and not self._has_metadata()

    def _make(self) -> None:
        salted = salted_password(self.hash_name, self._password.encode(), self._salt, ITERATIONS_MIN)
        self._credential = Credential(self._salt, *keys_of(self.hash_name, salted), ITERATIONS_MIN)


def _credential(record: UserScramCredentialRecord) -> Credential:
    return Credential(record.salt, record.stored_key, record.server_key, record.iterations)
