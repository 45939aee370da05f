"""The user as which nodes log in, before they know any metadata."""

import pytest

from ottla.broker.authentication.accounts import OwnAccount, ScramAccounts
from ottla.broker.authentication.exchange import LoggedIn, LoginFailed
from ottla.broker.authentication.scram import ScramExchange
from ottla.broker.authentication.token_credentials import TokenCredentials
from ottla.ids import Principal
from ottla.link.scram import ScramClient
from ottla.metadata.image.security import SecurityImage


class Listener:
    """A listener whose node logs in elsewhere as `node`; nobody has a credential in the metadata."""

    def __init__(self) -> None:
        self.has_metadata = False
        accounts = ScramAccounts("SCRAM-SHA-512", SecurityImage, TokenCredentials(None, lambda: b"salt"))
        self.accounts = OwnAccount(accounts, "node", "secret", b"salt", lambda: self.has_metadata)

    def log_in(self, username: str, password: str, extensions: str = "") -> LoggedIn | None:
        client = ScramClient("SCRAM-SHA-512", username, password, "nonce", extensions)
        exchange = ScramExchange(self.accounts, "server")
        first = client.first()
        if (work := exchange.prepare(first)) is not None:
            work()
        said, _ = exchange.step(first)
        said, outcome = exchange.step(client.final(said))
        client.verify(said)
        return outcome


def test_nodes_know_each_other_before_there_is_metadata() -> None:
    listener = Listener()
    for _ in range(2):
        outcome = listener.log_in("node", "secret")
        assert outcome is not None
        assert outcome.principal == Principal("User", "node")


@pytest.mark.parametrize(("username", "password", "extensions"), [("node", "wrong", ""), ("eve", "secret", "")])
def test_nobody_else_logs_in(username: str, password: str, extensions: str) -> None:
    with pytest.raises(LoginFailed):
        Listener().log_in(username, password, extensions)


def test_token_of_that_name_is_none() -> None:
    with pytest.raises(LoginFailed):
        Listener().log_in("node", "secret", "tokenauth=true")


def test_metadata_alone_counts_once_it_is_there() -> None:
    listener = Listener()
    assert listener.log_in("node", "secret") is not None
    listener.has_metadata = True
    with pytest.raises(LoginFailed, match="no such user"):
        listener.log_in("node", "secret")
