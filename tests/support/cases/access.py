"""Generated access control lists with requests about them, and the rules of Kafka's authorizer in their plainest form."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from ottla.ids import Principal
from ottla.metadata.acls import Acl, Operation, PatternType, Permission, ResourceType

TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
NAMES = ("a", "ab", "abc", "abd", "b", "hardcode", "hard", "*", "*x", "**")
PRINCIPALS = ("User:ann", "User:bob", "User:*", "Group:ann")
HOSTS = ("*", "10.0.0.1", "10.0.0.2")
OPERATIONS = (Operation.ALL, *range(Operation.READ, Operation.TWO_PHASE_COMMIT + 1))


class Question(NamedTuple):
    """Whether a principal may do an operation to a resource; with `name` None, to any of the type."""

    principal: Principal
    host: str
    operation: int
    resource_type: int
    name: str | None


class World(NamedTuple):
    super_users: Sequence[str]
    allow_everyone: bool
    acls: Sequence[Acl]
    dropped: int
    """So many of the first are removed again, before anything is asked."""
    questions: Sequence[Question]


def worlds(chance: Random, count: int, questions: int) -> Iterator[World]:
    for _ in range(count):
        # Few types, names and operations in one world: many bindings are about the same.
        types = chance.sample(TYPES, chance.randint(1, 2))
        names = chance.sample(NAMES, chance.randint(1, 6))
        operations = [*chance.sample(OPERATIONS, chance.randint(1, 5)), Operation.DESCRIBE]
        deny_share = chance.choice((0.0, 0.2, 0.5))
        acls = {
            Acl(
                chance.choice(types),
                chance.choice(names),
                chance.choice((PatternType.LITERAL, PatternType.PREFIXED)),
                chance.choice(PRINCIPALS),
                chance.choice(HOSTS),
                chance.choice(operations),
                Permission.DENY if chance.random() < deny_share else Permission.ALLOW,
            ): None
            for _ in range(chance.choice((0, 1, 2, 3, 5, 8, 25)))
        }
        asked = [
            Question(
                Principal(chance.choice(("User", "User", "User", "Group")), chance.choice(("ann", "bob", "eve"))),
                chance.choice(HOSTS[1:]),
                chance.choice((*operations, *OPERATIONS)) if chance.random() < 0.9 else Operation.DESCRIBE_CONFIGS,
                chance.choice(TYPES),
                None if chance.random() < 0.25 else chance.choice((*names, *NAMES[:-3], "abcd", "x")),
            )
            for _ in range(questions)
        ]
        yield World(
            chance.choice(((), (), ("User:eve", "User:ann"))),
            chance.random() < 0.3,
            list(acls),
            chance.randint(0, len(acls) // 2),
            [each for each in asked if each.operation != Operation.ALL],
        )


def is_allowed(world: World, asked: Question) -> bool:
    """Kafka's rules, looking at every binding."""
    asker = str(asked.principal)
    if asker in world.super_users:
        return True
    if asked.name is None:
        return _is_any_allowed(world, asked)
    covering = [
        acl for acl in world.acls[world.dropped :] if acl.resource_type == asked.resource_type and _covers(acl, asked.name)
    ]
    matching = [acl for acl in covering if acl.principal in (asker, "User:*") and acl.host in (asked.host, "*")]
    if any(acl.permission == Permission.DENY and acl.operation in (asked.operation, Operation.ALL) for acl in matching):
        return False
    enough = {asked.operation, Operation.ALL}
    if asked.operation == Operation.DESCRIBE:
        enough |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if asked.operation == Operation.DESCRIBE_CONFIGS:
        enough |= {Operation.ALTER_CONFIGS}
    if any(acl.permission == Permission.ALLOW and acl.operation in enough for acl in matching):
        return True
    return world.allow_everyone and not covering


def _covers(acl: Acl, name: str) -> bool:
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.name)
    return acl.name == name or (acl.name == "*" and not name.startswith("*"))


def _is_any_allowed(world: World, asked: Question) -> bool:
    if is_allowed(world, asked._replace(name="hardcode")):
        return True
    matching = [
        acl
        for acl in world.acls[world.dropped :]
        if acl.resource_type == asked.resource_type
        and acl.principal in (str(asked.principal), "User:*")
        and acl.host in (asked.host, "*")
        and acl.operation in (asked.operation, Operation.ALL)
    ]
    everything = [acl.permission for acl in matching if (acl.pattern_type, acl.name) == (PatternType.LITERAL, "*")]
    if everything:
        return Permission.DENY not in everything
    denied = [acl for acl in matching if acl.permission == Permission.DENY]
    return any(
        not any(
            allowed.name.startswith(acl.name)
            if acl.pattern_type == PatternType.PREFIXED
            else allowed.pattern_type == PatternType.LITERAL and allowed.name == acl.name
            for acl in denied
        )
        for allowed in matching
        if allowed.permission == Permission.ALLOW
    )
