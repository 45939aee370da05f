"""SCRAM credentials."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.admin.scram import ScramCredential, ScramDeletion, ScramMechanism, ScramUpsertion, salted_password
from ottla.errors import DuplicateResourceError, ResourceNotFoundError, UnacceptableCredentialError
from ottla.wire.apis import ApiKey

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def test_credentials_are_set_described_and_deleted(
    admin: Any, name: str, needs: Callable[..., None], eventually: Callable[..., None]
) -> None:
    needs(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
    changes = [ScramUpsertion(name, "SCRAM-SHA-256", "secret"), ScramUpsertion(name, SHA_512, b"secret", 8192, b"salty")]
    for change in changes:
        admin.alter_user_scram_credentials([change]).raise_first()
    assert isinstance(admin.alter_user_scram_credentials(changes).errors[name], DuplicateResourceError)
    both = [ScramCredential(SHA_256, 4096), ScramCredential(SHA_512, 8192)]
    eventually(lambda: admin.describe_user_scram_credentials().values_found.get(name), both)
    results = admin.describe_user_scram_credentials([name, "stranger"])
    assert results[name] == both
    assert isinstance(results.errors["stranger"], ResourceNotFoundError)
    results = admin.alter_user_scram_credentials(
        [ScramDeletion(name, "scram-sha-256"), ScramUpsertion("weak", SHA_256, "secret", 1), ScramDeletion("stranger", SHA_512)]
    )
    assert results[name] is None
    assert isinstance(results.errors["weak"], UnacceptableCredentialError)
    assert isinstance(results.errors["stranger"], ResourceNotFoundError)
    eventually(lambda: admin.describe_user_scram_credentials([name]).values_found.get(name), [ScramCredential(SHA_512, 8192)])


def test_salted_password_is_that_of_rfc_7677() -> None:
    """The example of RFC 7677: user `user`, password `pencil`; its server signature follows from the salted password."""
    import hashlib
    import hmac

    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = salted_password(SHA_256, "pencil", salt, 4096)
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    auth = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}"
    server_key = hmac.digest(salted, b"Server Key", hashlib.sha256)
    signature = hmac.digest(server_key, auth.encode(), hashlib.sha256)
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_password_is_not_shown() -> None:
    assert "secret" not in repr(ScramUpsertion("alice", SHA_256, "secret"))


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (ScramUpsertion("", SHA_256, "x"), ValueError, "alterations: user must not be empty"),
        (ScramUpsertion("a", "MD5", "x"), ValueError, "alterations: mechanism is 'MD5'"),
        (ScramUpsertion("a", SHA_256, ""), ValueError, "alterations: password of user a"),
        (ScramUpsertion("a", SHA_256, "x", 0), ValueError, "alterations: iterations is 0"),
        (("a", "b"), TypeError, "alterations: a change is a ScramUpsertion"),
        (ScramDeletion("a", "unknown"), ValueError, "alterations: mechanism must be"),
    ],
)
def test_bad_argument_is_named(scripted: Any, change: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        scripted.alter_user_scram_credentials([change])
