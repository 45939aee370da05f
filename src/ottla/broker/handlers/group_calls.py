"""What the handlers of groups share: who asks, and checks that come before any coordinator is asked."""

from __future__ import annotations

from ottla.broker.request import RequestContext
from ottla.coordinator.contract import Caller


def caller_of(context: RequestContext) -> Caller:
    """Who asks, as groups remember it."""
    return Caller(context.client_id or "", f"/{context.connection.peer[0]}", context.version)
