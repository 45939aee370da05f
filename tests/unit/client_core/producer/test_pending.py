"""An operation becomes done once and calls those who wait."""

from ottla.client_core.producer.pending import Pending
from ottla.errors import NetworkError


def test_only_the_first_end_counts() -> None:
    pending = Pending("something")
    called: list[str] = []
    pending.waiters.append(lambda: called.append("done"))
    error = NetworkError("gone")
    pending.finish(error)
    pending.finish()
    assert (called, pending.is_done, pending.error) == (["done"], True, error)
