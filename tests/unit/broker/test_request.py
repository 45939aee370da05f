"""`Pending`: a response that is completed later."""

import weakref

from ottla.broker.request import Pending


def test_abandoned_pending_keeps_nothing_of_the_request() -> None:
    class Parked:
        def deliver(self, response: object, failure: BaseException | None) -> None:
            raise AssertionError("an abandoned request was answered")

    parked, pending = Parked(), Pending()
    pending.deliver_to(parked.deliver)
    gone = weakref.ref(parked)
    pending.abandon()
    del parked
    assert gone() is None
    pending.complete(None)


def test_completed_pending_is_freed_without_the_garbage_collector() -> None:
    class Parked:
        def __init__(self, pending: Pending) -> None:
            self.pending = pending
            self.answers: list[object] = []
            pending.deliver_to(self.deliver)

        def deliver(self, response: object, failure: BaseException | None) -> None:
            self.answers.append(response)

    for is_early in (False, True):
        pending = Pending()
        if is_early:
            pending.complete(None)
        parked = Parked(pending)
        pending.complete(None)
        pending.complete(None)
        assert parked.answers == [None]
        gone = weakref.ref(parked)
        del parked, pending
        assert gone() is None
