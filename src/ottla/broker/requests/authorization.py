"""The stage that asks whether a principal may do what its request asks for, and the grants that remember the answers.

An `Authorizer` is the rule: `metadata/authorizer.py`, with `authorizer.class.name`; without, everything is allowed. What an
API's requests need is in its descriptor (`apis.py`), and is checked once: by the broker that handles the request, or by the
controller, with the client's principal, if the broker forwards it. A denied topic is taken out of the request and refused
alone; anything else refuses the request. What depends on more than the request's fields, such as a list of all topics, the
handler asks for with `RequestContext.allows`. The rule is asked on the loop alone.

`Grants` are what one principal at one address has been found to be allowed. They are dropped when the rule's version changes.
The fast path goes on only with the grants that it finds there; without them the general path asks the rule, and notes the
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakValueDictionary

from ottla.broker.requests.apis import SERVED, Check, TopicFields, checks_of
from ottla.broker.requests.audit_log import AuditLog, audit_levels
from ottla.broker.requests.topics import add_answers, is_empty, name_of, take_out
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import CLUSTER_NAME, OPERATIONS, ResourceType
from ottla.wire.apis import APIS
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.requests.context import ConnectionInfo, Handled, RequestContext
    from ottla.ids import Principal

NAMES_MAX: Final = 10_000
"""So many names are remembered for each operation; beyond it all are forgotten, and the rule is asked again."""

_CODES: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
_RESOURCES: Final = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTIONAL_ID: "Transactional Id",
    ResourceType.DELEGATION_TOKEN: "Delegation Token",
    ResourceType.USER: "User",
}
_OPERATIONS: Final = {code: "".join(word.capitalize() for word in name.split("_")) for code, name in OPERATIONS.items()}


class Verdict(Protocol):
    """A decision of the rule. Its text names what decided it."""

    @property
    def is_allowed(self) -> bool: ...


class Authorizer(Protocol):
    """The rule that says who may do what."""

    version: int
    """Changes whenever an answer may have changed."""

    def decide(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> Verdict:
        """Whether `principal`, connected from `host`, may do `operation` to a resource; `KafkaError` if it cannot say."""
        ...

    def allows_any(self, principal: Principal, host: str, operation: int, resource_type: int) -> bool:
        """Whether it may do `operation` to some resource of a type, whichever."""
        ...


class Grants:
    """What one principal at one address may do, as far as it has been asked."""

    __slots__ = ("__weakref__", "_allowed", "_audit", "_host", "_principal", "_version", "authorizer")

    def __init__(self, authorizer: Authorizer, audit: AuditLog, principal: Principal, host: str) -> None:
        self.authorizer = authorizer
        self._audit = audit
        self._principal = principal
        self._host = host
        self._version = authorizer.version
        self._allowed: dict[tuple[int, int], set[str | bytes]] = {}

    def granted(self, operation: int, resource_type: int) -> set[str | bytes]:
        """The names that are known to be allowed; of topics also the ids. For the fast path: others may be allowed, too."""
        if self._version != self.authorizer.version or audit_levels.is_all:
            self._version = self.authorizer.version
            self._allowed.clear()
        found = self._allowed.get((operation, resource_type))
        if found is None:
            found = self._allowed[operation, resource_type] = set()
        return found

    def allows(
        self, operation: int, resource_type: int, name: str, api_key: int, *, count: int = 1, is_silent: bool = False
    ) -> bool:
        """Whether a request may do `operation` to the resource, which it names `count` times.

        `is_silent`: a denial is not told to the client, so it is no line of the audit log either.
        """
        granted = self.granted(operation, resource_type)
        if name in granted:
            return True
        verdict = self.authorizer.decide(self._principal, self._host, operation, resource_type, name)
        is_allowed = verdict.is_allowed
        if audit_levels.is_trace if is_silent else audit_levels.is_all or (audit_levels.is_denied and not is_allowed):
            self._audit.note(
                self._principal,
                self._host,
                operation,
                resource_type,
                name,
                APIS[api_key].name,
                count,
                is_allowed,
                verdict,
                is_silent,
            )
        if is_allowed:
            self.note(granted, name)
        return is_allowed

    def allows_any(self, operation: int, resource_type: int) -> bool:
        """Whether some resource of a type may be used, whichever. Not in the audit log, as in Kafka."""
        return self.authorizer.allows_any(self._principal, self._host, operation, resource_type)

    @staticmethod
    def note(granted: set[str | bytes], name: str | bytes) -> None:
        """Add to what `granted` returned."""
        if len(granted) >= NAMES_MAX:
            granted.clear()
        granted.add(name)

    def refusal(self, operation: int, resource_type: int, name: str | None) -> KafkaError:
        """The error for what is denied; `name` is None for the parts of a request that are denied together."""
        operation_name, resource = _OPERATIONS[operation], _RESOURCES[resource_type]
        what = f"{resource.lower()} {name!r}" if name else f"this {resource.lower()}"
        if resource_type == ResourceType.CLUSTER:
            what = "the cluster"
        return KafkaError(
            _CODES[resource_type],
            f"{resource} authorization failed. {self._principal} at {self._host} needs {operation_name} on {what}",
        )


class Authorization:
    """The rule of one node and the grants of its peers; those of the same principal and address share them."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self.authorizer: Authorizer | None = None
        """None: everything is allowed."""
        self._audit = AuditLog(monotonic_s)
        self._grants: WeakValueDictionary[tuple[Principal, str], Grants] = WeakValueDictionary()

    def grants_of(self, connection: ConnectionInfo) -> Grants | None:
        """The grants of a connection; None if everything is allowed."""
        authorizer = self.authorizer
        if authorizer is None:
            return None
        grants = connection.grants
        if grants is None or grants.authorizer is not authorizer:
            key = connection.principal, connection.peer[0]
            grants = self._grants.get(key)
            if grants is None or grants.authorizer is not authorizer:
                grants = self._grants[key] = Grants(authorizer, self._audit, *key)
            connection.grants = grants
        return grants


Refuse = Callable[[Any, Any, KafkaError], Message | None]
"""An API's `refuse`."""


def admit(
    authorization: Authorization, context: RequestContext, request: Any, refuse: Refuse, handle: Callable[[Any, Any], Handled]
) -> Handled:
    """Authorize a request, then handle what is left of it. None if nothing is; `with_denied` adds the answers to the rest.

    Raises `KafkaError` if all of it is denied, and what `handle` raises.
    """
    grants = context.grants = authorization.grants_of(context.connection)
    if grants is not None:
        context.denied = _authorize(grants, context, request, refuse)
        if context.denied is not None and context.denied.is_all:
            return None
    return handle(context, request)


def with_denied(
    context: RequestContext, request: Any, refuse: Refuse, response: Message | None, failure: BaseException | None
) -> tuple[Message | None, BaseException | None]:
    """The response with the answers to the topics that were denied, or the failure."""
    if context.denied is None:
        return response, failure
    try:
        if isinstance(failure, KafkaError):
            response, failure = refuse(context, request, failure), None
        return (context.denied.added_to(response), None) if failure is None else (None, failure)
    except Exception as fault:
        return None, fault


class DeniedParts:
    """The topics of a request that were denied, and taken out of it: their answers are added to its response."""

    __slots__ = ("_answers", "_failure", "_fields", "is_all")

    def __init__(
        self, context: RequestContext, request: Message, denied: Message, error: KafkaError, fields: TopicFields, refuse: Refuse
    ) -> None:
        self._fields = fields
        self._answers: Message | None = None
        self._failure: Exception | None = None
        self.is_all = not fields.are_asked_last and is_empty(request, fields)
        """Whether nothing is left to handle."""
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
        if self._answers is not None and not getattr(response, "error_code", ErrorCode.NONE):
            add_answers(response, self._answers, self._fields)
        return response


def _authorize(grants: Grants, context: RequestContext, request: Any, refuse: Refuse) -> DeniedParts | None:
    """Check what a request needs. Denied topics are taken out of it, and returned; `KafkaError` if all of it is denied."""
    denied: DeniedParts | None = None
    for check in checks_of(context.api_key, context.connection.is_controller_listener):
        if check.applies is not None and not check.applies(request):
            continue
        if check.or_cluster and grants.allows(
            check.or_cluster, ResourceType.CLUSTER, CLUSTER_NAME, context.api_key, is_silent=True
        ):
            continue
        if check.resource_type == ResourceType.TOPIC:
            assert denied is None, "topics are checked last, and once"
            denied = _take_out_denied(grants, context, request, check, refuse)
            continue
        name = CLUSTER_NAME if check.resource_type == ResourceType.CLUSTER else getattr(request, check.field)
        if name is not None and not grants.allows(check.operation, check.resource_type, name, context.api_key):
            raise grants.refusal(check.operation, check.resource_type, name)
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
            if name is None or name in names:
                continue  # an unknown id: the handler says so
            if not grants.allows(operation, ResourceType.TOPIC, name, context.api_key):
                names.add(name)
            elif topic_id := getattr(entry, "topic_id", None):
                grants.note(grants.granted(operation, ResourceType.TOPIC), topic_id)
    if not names:
        return None
    part = take_out(context, request, fields, lambda name, _: name in names)
    assert part is not None, "it has these names"
    return DeniedParts(context, request, part, grants.refusal(operation, ResourceType.TOPIC, None), fields, refuse)
