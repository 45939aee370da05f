"""An observer hands on what was sent with its time, and forgets it with its outcome."""

from typing import Any

from tests.support.nodes.sim_stage import Recording, on_stage

from ottla.client_core.machine import Request
from ottla.errors import NetworkError
from ottla.sim.clients.client import Client, ClientObserver, Stage
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse


class Noting(ClientObserver):
    """Notes its calls."""

    calls: tuple[Any, ...] = ()

    def on_sent(self, message: Any) -> None:
        self.calls += (("sent", message),)

    def on_answer(self, request: Request, message: Any, response: Any, sent_s: float) -> None:
        self.calls += (("answered", message, response, sent_s),)

    def on_failure(self, message: Any) -> None:
        self.calls += (("failed", message),)


def test_outcomes_come_with_the_message_that_was_sent() -> None:
    def body(stage: Stage, checker: Recording) -> None:
        observer = Noting(Client(stage, "c"))
        answered, failed, unsent = (Request(MetadataRequest()) for _ in range(3))
        first, second, response = MetadataRequest(topics=[]), MetadataRequest(topics=[]), MetadataResponse()
        observer.sent(answered, first, 12)
        observer.sent(failed, second, 12)
        observer.answered(answered, response, 12)
        observer.failed(failed, NetworkError("lost"))
        observer.failed(unsent, NetworkError("no connection", is_unsent=True))
        assert [call[0] for call in observer.calls] == ["sent", "sent", "answered", "failed"]
        assert observer.calls[2][1] is first
        assert observer.calls[2][2:] == (response, 0.0)
        assert observer.calls[3][1] is second
        assert [line.split()[2:] for line in stage.trace.lines] == [["no", "answer", "Metadata", "NetworkError"]]

    on_stage(body)
