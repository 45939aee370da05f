"""The words of access control: resource types, pattern types, operations and permissions, by the protocol's numbers."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

_NOT_ASKED_FOR = -(2**31)


class AclResourceType(IntEnum):
    """What a rule protects. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a rule's resource name is meant. ANY and MATCH are for filters: MATCH finds all rules that apply to a name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What a rule allows or denies. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    """Whether a rule allows or denies. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclBinding(NamedTuple):
    """A rule: who may, or may not, do what with which resource, from which host."""

    resource_type: AclResourceType | str
    resource_name: str
    principal: str
    """Such as `User:alice`; `User:*` is everybody."""
    operation: AclOperation | str
    permission: AclPermission | str = AclPermission.ALLOW
    host: str = "*"
    pattern_type: PatternType | str = PatternType.LITERAL


class AclFilter(NamedTuple):
    """Which rules to find or delete. A field that is left out matches every rule."""

    resource_type: AclResourceType | str = AclResourceType.ANY
    resource_name: str | None = None
    principal: str | None = None
    operation: AclOperation | str = AclOperation.ANY
    permission: AclPermission | str = AclPermission.ANY
    host: str | None = None
    pattern_type: PatternType | str = PatternType.ANY


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """The operations in a bit field of a response; None if they were not asked for."""
    if bits == _NOT_ASKED_FOR:
        return None
    return frozenset(operation for operation in AclOperation if operation and bits >> operation & 1)
