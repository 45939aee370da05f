"""A reply that is not there yet."""

import weakref

from ottla.broker.request import Pending


def test_who_is_abandoned_keeps_nothing_of_the_request() -> None:
    class Parked:
        def deliver(self, response: object, failure: BaseException | None) -> None:
            raise AssertionError("nobody waits")

    parked, pending = Parked(), Pending()
    pending.deliver_to(parked.deliver)
    gone = weakref.ref(parked)
    pending.abandon()
    del parked
    assert gone() is None
    pending.complete(None)
