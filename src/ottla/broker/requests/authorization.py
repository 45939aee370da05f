"""The stage that asks whether a principal may do what its request asks for, and the grants that remember the answers.

An `Authorizer` is the rule. There is none yet: everything is allowed. What an API's requests need is in its descriptor
(`apis.py`), and is checked once: by the broker that handles the request, or by the controller, with the client's principal, if
the broker forwards it. A denied topic is taken out of the request and refused alone; anything else refuses the request.

`Grants` are what one principal at one address has been found to be allowed. They are dropped when the rule's version changes.
The fast path goes on only with the grants that it finds there; without them the general path asks the rule, and notes the
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakValueDictionary

from ottla.broker.requests.apis import CLUSTER_NAME, SERVED, Check, Operation, ResourceType, TopicFields, checks_of
from ottla.broker.requests.topics import add_answers, is_empty, name_of, take_out
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.requests.context import ConnectionInfo, RequestContext
    from ottla.ids import Principal

NAMES_MAX: Final = 10_000
"""So many names are remembered for each operation; beyond it all are forgotten, and the rule is asked again."""

_CODES: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_RESOURCES: Final = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
}
_OPERATIONS: Final = {
    code: "".join(word.capitalize() for word in name.split("_"))
    for name, code in vars(Operation).items()
    if isinstance(code, int)
}


class Authorizer(Protocol):
    """The rule that says who may do what."""

    version: int
    """Changes whenever an answer may have changed."""

    def allows(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Whether `principal`, connected from `host`, may do `operation` to a resource."""
        ...


class Grants:
    """What one principal at one address may do, as far as it has been asked."""

    __slots__ = ("__weakref__", "_allowed", "_authorizer", "_host", "_principal", "_version")

    def __init__(self, authorizer: Authorizer, principal: Principal, host: str) -> None:
        self._authorizer = authorizer
        self._principal = principal
        self._host = host
        self._version = authorizer.version
        self._allowed: dict[tuple[int, int], set[str | bytes]] = {}

    def granted(self, operation: int, resource_type: int) -> set[str | bytes]:
        """The names that are known to be allowed; of topics also the ids. For the fast path: others may be allowed, too."""
        if self._version != self._authorizer.version:
            self._version = self._authorizer.version
            self._allowed.clear()
        found = self._allowed.get((operation, resource_type))
        if found is None:
            found = self._allowed[operation, resource_type] = set()
        return found

    def allows(self, operation: int, resource_type: int, name: str) -> bool:
        granted = self.granted(operation, resource_type)
        if name in granted:
            return True
        if not self._authorizer.allows(self._principal, self._host, operation, resource_type, name):
            return False
        self.note(granted, name)
        return True

    @staticmethod
    def note(granted: set[str | bytes], name: str | bytes) -> None:
        """Add to what `granted` returned."""
        if len(granted) >= NAMES_MAX:
            granted.clear()
        granted.add(name)

    def refusal(self, operation: int, resource_type: int, name: str | None) -> KafkaError:
        """The error for what is denied; `name` is None for the parts of a request that are denied together."""
        operation_name, resource = _OPERATIONS[operation], _RESOURCES[resource_type]
        what = f"{resource} {name!r}" if name else f"this {resource}"
        if resource_type == ResourceType.CLUSTER:
            what = "the cluster"
        return KafkaError(
            _CODES[resource_type],
            f"{self._principal} at {self._host} is not allowed to do this: it needs {operation_name} on {what}",
        )


class Authorization:
    """The rule of one node and the grants of its peers; those of the same principal and address share them."""

    def __init__(self) -> None:
        self.authorizer: Authorizer | None = None
        """None: everything is allowed."""
        self._grants: WeakValueDictionary[tuple[Principal, str], Grants] = WeakValueDictionary()

    def grants_of(self, connection: ConnectionInfo) -> Grants | None:
        """The grants of a connection; None if everything is allowed."""
        if self.authorizer is None:
            return None
        if connection.grants is None:
            key = connection.principal, connection.peer[0]
            grants = self._grants.get(key)
            if grants is None:
                grants = self._grants[key] = Grants(self.authorizer, *key)
            connection.grants = grants
        return connection.grants


Refuse = Callable[[Any, Any, KafkaError], Message | None]
"""An API's `refuse`."""


class DeniedParts:
    """The topics of a request that were denied, and taken out of it: their answers are added to its response."""

    __slots__ = ("_answers", "_failure", "_fields", "is_all")

    def __init__(
        self, context: RequestContext, request: Message, denied: Message, error: KafkaError, fields: TopicFields, refuse: Refuse
    ) -> None:
        self._fields = fields
        self._answers: Message | None = None
        self._failure: Exception | None = None
        self.is_all = is_empty(request, fields)
        """Whether nothing is left of the request."""
        try:
            self._answers = refuse(context, denied, error)
        except Exception as failure:
            self._failure = failure  # Produce with acks=0 has no response: its connection ends once the rest is handled

    def added_to(self, response: Message | None) -> Message | None:
        """The whole response; raises if there is none to a refused part."""
        if self._failure is not None:
            raise self._failure
        if response is None:
            return self._answers
        if self._answers is not None:
            add_answers(response, self._answers, self._fields)
        return response


def authorize(grants: Grants, context: RequestContext, request: Any, refuse: Refuse) -> DeniedParts | None:
    """Check what a request needs. Denied topics are taken out of it, and returned; `KafkaError` if all of it is denied."""
    denied: DeniedParts | None = None
    for check in checks_of(context.api_key, context.connection.is_controller_listener):
        operation, resource_type, field = check
        if resource_type == ResourceType.TOPIC:
            assert denied is None, "topics are checked last, and once"
            denied = _take_out_denied(grants, context, request, check, refuse)
            continue
        name = CLUSTER_NAME if resource_type == ResourceType.CLUSTER else getattr(request, field)
        if name is not None and not grants.allows(operation, resource_type, name):
            raise grants.refusal(operation, resource_type, name)
    return denied


def _take_out_denied(grants: Grants, context: RequestContext, request: Any, check: Check, refuse: Refuse) -> DeniedParts | None:
    fields = SERVED[context.api_key].topics
    if fields is None:
        return None
    operation = check.operation
    names: set[str | None] = set()
    for attribute in fields.topics:
        entries: Sequence[Any] = getattr(request, attribute) or ()
        for entry in entries:
            name = name_of(context, fields, entry)
            if name is None:
                continue  # an unknown id: the handler says so
            if not grants.allows(operation, ResourceType.TOPIC, name):
                names.add(name)
            elif topic_id := getattr(entry, "topic_id", None):
                grants.note(grants.granted(operation, ResourceType.TOPIC), topic_id)
    if not names:
        return None
    part = take_out(context, request, fields, lambda name, _: name in names)
    assert part is not None, "it has these names"
    return DeniedParts(context, request, part, grants.refusal(operation, ResourceType.TOPIC, None), fields, refuse)
