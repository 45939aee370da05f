"""Whether a principal may do something to the cluster. Everything is allowed for now: there are no access control lists yet.

Handlers call `check_cluster_action` for requests that only nodes of the cluster may send, such as registrations and envelopes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.requests.context import RequestContext
    from ottla.broker.requests.principal import Principal

Allows = Callable[["Principal"], bool]


def allow_all(principal: Principal) -> bool:
    """The rule without access control lists."""
    return True


def check_cluster_action(context: RequestContext, allows: Allows = allow_all) -> None:
    """Raise CLUSTER_AUTHORIZATION_FAILED unless the request's principal may act as a node of the cluster."""
    principal = context.connection.principal
    if not allows(principal):
        raise KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"{principal} may not act as a node of this cluster: allow it ClusterAction on the cluster",
        )
