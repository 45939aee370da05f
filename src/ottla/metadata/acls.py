"""Access control lists: Kafka's codes, one binding (`Acl`), and the filters of DescribeAcls and DeleteAcls. Pure.

A binding allows or denies one operation to one principal from one host, on the resources that its pattern covers. What they
mean together is decided in `authorizer.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.wire.messages.metadata_records import AccessControlEntryRecord

UNKNOWN: Final = 0
ANY: Final = 1
"""In filters, of all four kinds of codes."""


class ResourceType:
    """Kafka's codes of what access is granted to."""

    TOPIC: Final = 2
    GROUP: Final = 3
    CLUSTER: Final = 4
    TRANSACTIONAL_ID: Final = 5
    DELEGATION_TOKEN: Final = 6
    USER: Final = 7


class Operation:
    """Kafka's codes of what may be done to a resource."""

    ALL: Final = 2
    READ: Final = 3
    WRITE: Final = 4
    CREATE: Final = 5
    DELETE: Final = 6
    ALTER: Final = 7
    DESCRIBE: Final = 8
    CLUSTER_ACTION: Final = 9
    DESCRIBE_CONFIGS: Final = 10
    ALTER_CONFIGS: Final = 11
    IDEMPOTENT_WRITE: Final = 12
    CREATE_TOKENS: Final = 13
    DESCRIBE_TOKENS: Final = 14
    TWO_PHASE_COMMIT: Final = 15


class PatternType:
    """Kafka's codes of how a pattern covers names."""

    MATCH: Final = 2
    """In filters: all patterns that cover a name."""
    LITERAL: Final = 3
    PREFIXED: Final = 4


class Permission:
    """Kafka's codes of what a binding says."""

    DENY: Final = 2
    ALLOW: Final = 3


CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""
WILDCARD: Final = "*"
"""As a literal pattern: every name. As a host: every host."""
EVERYBODY: Final = "User:*"
"""As a principal: every principal, whatever its type."""

RESOURCE_TYPES: Final = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTIONAL_ID: "TransactionalId",
    ResourceType.DELEGATION_TOKEN: "DelegationToken",
    ResourceType.USER: "User",
}
"""Code → name, as Kafka writes it."""
OPERATIONS: Final = {code: name for name, code in vars(Operation).items() if isinstance(code, int)}
PATTERN_TYPES: Final = {code: name for name, code in vars(PatternType).items() if isinstance(code, int)}
PERMISSIONS: Final = {code: name for name, code in vars(Permission).items() if isinstance(code, int)}


class Acl(NamedTuple):
    """One binding, without the id of its record."""

    resource_type: int
    name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    @classmethod
    def of(cls, record: AccessControlEntryRecord) -> Acl:
        return cls(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )

    def __str__(self) -> str:
        """For people: `User:alice is allowed Read on topics named 'a*' from any host`, in Kafka's words."""
        return (
            f"StandardAcl(resourceType={RESOURCE_TYPES.get(self.resource_type, self.resource_type)}, "
            f"resourceName={self.name}, patternType={PATTERN_TYPES.get(self.pattern_type, self.pattern_type)}, "
            f"principal={self.principal}, host={self.host}, operation={OPERATIONS.get(self.operation, self.operation)}, "
            f"permissionType={PERMISSIONS.get(self.permission, self.permission)})"
        )


class AclFilter(NamedTuple):
    """Which bindings a request is about; None and ANY let all through."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def finder(self) -> Callable[[AccessControlEntryRecord], bool]:
        """Whether a binding passes. `*` and `User:*` are values like others; implied operations do not count."""
        type_, name, pattern_type, principal, host, operation, permission = self

        def passes(acl: AccessControlEntryRecord) -> bool:
            return (
                (type_ in (ANY, acl.resource_type))
                and (principal is None or principal == acl.principal)
                and (host is None or host == acl.host)
                and (operation in (ANY, acl.operation))
                and (permission in (ANY, acl.permission_type))
                and (pattern_type in (ANY, PatternType.MATCH, acl.pattern_type))
                and (
                    name is None
                    or name == acl.resource_name
                    or (pattern_type == PatternType.MATCH and covers(acl.pattern_type, acl.resource_name, name))
                )
            )

        return passes


def covers(pattern_type: int, pattern: str, name: str) -> bool:
    """Whether a pattern covers the resource `name`."""
    if pattern_type == PatternType.PREFIXED:
        return name.startswith(pattern)
    return pattern in (name, WILDCARD)
