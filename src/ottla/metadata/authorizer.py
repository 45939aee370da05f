"""StandardAuthorizer: who may do what, decided as Kafka's authorizer of that name decides, on the ACLs of the metadata log.

A decision looks at every pattern that covers the resource: its literal name, the prefixes of the name, and the literal `*`
(not of names that begin with an asterisk: Kafka's search misses it there). A binding counts if its principal is the asker's
or `User:*`, and its host the asker's address or `*`. Any matching Deny wins over any Allow. Without a match, a resource that
some pattern covers is denied; for others `allow.everyone.if.no.acl.found` decides.

The index holds, for each pattern, principal and host, the operations allowed and denied as two bit fields, so that a decision
is some twenty dictionary lookups, however many bindings there are. Prefixes are found by the lengths that exist.

Belongs to the loop: `follow` changes the index in place, between two decisions. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from ottla.config.authorizer import AuthorizerConfig
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Principal, Uuid
from ottla.metadata.acls import EVERYBODY, WILDCARD, Acl, Operation, PatternType, Permission
from ottla.wire.messages.metadata_records import AccessControlEntryRecord

_ALL: Final = 1 << Operation.ALL
_IMPLYING: Final = {
    Operation.DESCRIBE: sum(1 << each for each in (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)),
    Operation.DESCRIBE_CONFIGS: 1 << Operation.ALTER_CONFIGS,
}
"""Operation → the operations that include it, in an Allow. A Deny has no implications."""
_ANY_NAME: Final = "hardcode"
"""Kafka asks for this topic first where an operation has to be allowed on any at all."""

_Masks = tuple[int, int]
"""The operations that are allowed, and denied."""
_Bindings = dict[str, dict[str, _Masks]]
"""Of one pattern: principal → host → operations."""
_PatternKey = tuple[int, str]
"""(pattern type, name)."""
_EVERYTHING: Final = (PatternType.LITERAL, WILDCARD)
_NOTHING: Final = (0, 0)
_NO_HOSTS: Final[Mapping[str, _Masks]] = {}


class Verdict(NamedTuple):
    """A decision, and the rule that made it."""

    is_allowed: bool
    rule: str | Acl

    def __str__(self) -> str:
        return f"MatchingAcl(acl={self.rule})" if isinstance(self.rule, Acl) else self.rule


_SUPER_USER: Final = Verdict(True, "SuperUser")
_DEFAULT_ALLOW: Final = Verdict(True, "DefaultAllow")
_DEFAULT_DENY: Final = Verdict(False, "DefaultDeny")


class StandardAuthorizer:
    """The rule of one node. `follow` gives it the bindings; until then only super users get an answer."""

    def __init__(self, config: AuthorizerConfig) -> None:
        self.version = 0
        """Changes whenever an answer may have changed."""
        self.super_users = config.super_users
        self._default = _DEFAULT_ALLOW if config.allow_everyone else _DEFAULT_DENY
        self._is_loaded = False
        self._acls: Mapping[Uuid, AccessControlEntryRecord] = {}
        self._patterns: dict[int, dict[_PatternKey, _Bindings]] = {}
        """Resource type → pattern → bindings."""
        self._lengths: dict[int, Counter[int]] = {}
        """Resource type → length of prefixes → how many there are."""
        self._of_principal: dict[tuple[int, str], dict[_PatternKey, None]] = {}
        """(resource type, principal) → the patterns with bindings for it."""

    # -- deciding

    def allows(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Whether `principal`, connected from `host`, may do `operation` to a resource."""
        return self.decide(principal, host, operation, resource_type, name).is_allowed

    def decide(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> Verdict:
        """Like `allows`, with the rule. Raises `KafkaError` while the bindings are not loaded."""
        asker = f"{principal.type}:{principal.name}"
        if asker in self.super_users:
            return _SUPER_USER
        if not self._is_loaded:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"this node has not loaded the access control lists yet, so {asker} cannot be authorized: ask again soon",
            )
        denying = 1 << operation | _ALL
        allowing = denying | _IMPLYING.get(operation, 0)
        verdict, is_covered = None, False
        for key, bindings in self._covering(resource_type, name):
            is_covered = True
            for who in (asker, EVERYBODY):
                hosts = bindings.get(who)
                if hosts is None:
                    continue
                for where in (host, WILDCARD):
                    allowed, denied = hosts.get(where, _NOTHING)
                    if denied & denying:
                        return Verdict(False, _binding(resource_type, key, who, where, denied, operation, Permission.DENY))
                    if verdict is None and allowed & allowing:
                        rule = _binding(resource_type, key, who, where, allowed, operation, Permission.ALLOW)
                        verdict = Verdict(True, rule)
        if verdict is not None:
            return verdict
        return _DEFAULT_DENY if is_covered else self._default

    def allows_any(self, principal: Principal, host: str, operation: int, resource_type: int) -> bool:
        """Whether `operation` is allowed on some resource of a type, whichever.

        An Allow counts unless a Deny covers the whole of it. Implied operations do not count.
        """
        if self.allows(principal, host, operation, resource_type, _ANY_NAME):
            return True
        wanted = 1 << operation | _ALL
        askers = f"{principal.type}:{principal.name}", EVERYBODY
        patterns = self._patterns.get(resource_type, {})
        everything = patterns.get(_EVERYTHING, {})
        allowed, denied = _masks_of(everything, askers, host)
        if (allowed | denied) & wanted:
            return not denied & wanted
        for asker in askers:
            for key in self._of_principal.get((resource_type, asker), ()):
                if _masks_of(patterns[key], (asker,), host)[0] & wanted and not any(
                    _masks_of(bindings, askers, host)[1] & wanted
                    for other, bindings in self._covering(resource_type, key[1])
                    if other[0] == PatternType.PREFIXED or (other == key and key[0] == PatternType.LITERAL)
                ):
                    return True
        return False

    def _covering(self, resource_type: int, name: str) -> Iterator[tuple[_PatternKey, _Bindings]]:
        """The patterns that cover a resource, and their bindings."""
        patterns = self._patterns.get(resource_type)
        if patterns is None:
            return
        if (bindings := patterns.get(key := (PatternType.LITERAL, name))) is not None:
            yield key, bindings
        if not name.startswith(WILDCARD) and (bindings := patterns.get(_EVERYTHING)) is not None:
            yield _EVERYTHING, bindings
        size = len(name)
        for length in self._lengths.get(resource_type, ()):
            if length <= size and (bindings := patterns.get(key := (PatternType.PREFIXED, name[:length]))) is not None:
                yield key, bindings

    # -- following the metadata

    def follow(self, changed: Iterable[Uuid], acls: Mapping[Uuid, AccessControlEntryRecord]) -> None:
        """Go over to the bindings `acls`; those that are not `changed` are the same as before."""
        for acl_id in changed:
            before, after = self._acls.get(acl_id), acls.get(acl_id)
            if before is not None:
                self._remove(Acl.of(before))
            if after is not None:
                self._add(Acl.of(after))
        self._acls, self._is_loaded = acls, True
        self.version += 1

    def _add(self, acl: Acl) -> None:
        key = acl.pattern_type, acl.name
        patterns = self._patterns.setdefault(acl.resource_type, {})
        bindings = patterns.get(key)
        if bindings is None:
            bindings = patterns[key] = {}
            if acl.pattern_type == PatternType.PREFIXED:
                self._lengths.setdefault(acl.resource_type, Counter())[len(acl.name)] += 1
        hosts = bindings.get(acl.principal)
        if hosts is None:
            hosts = bindings[acl.principal] = {}
            self._of_principal.setdefault((acl.resource_type, acl.principal), {})[key] = None
        allowed, denied = hosts.get(acl.host, _NOTHING)
        bit = _bit(acl)
        hosts[acl.host] = (allowed | bit, denied) if acl.permission == Permission.ALLOW else (allowed, denied | bit)

    def _remove(self, acl: Acl) -> None:
        """The controller writes no binding twice, so no other record says the same."""
        key = acl.pattern_type, acl.name
        patterns = self._patterns[acl.resource_type]
        bindings = patterns[key]
        hosts = bindings[acl.principal]
        allowed, denied = hosts[acl.host]
        bit = _bit(acl)
        masks = (allowed & ~bit, denied) if acl.permission == Permission.ALLOW else (allowed, denied & ~bit)
        if masks != _NOTHING:
            hosts[acl.host] = masks
            return
        del hosts[acl.host]
        if hosts:
            return
        del bindings[acl.principal]
        of_principal = self._of_principal[acl.resource_type, acl.principal]
        del of_principal[key]
        if not of_principal:
            del self._of_principal[acl.resource_type, acl.principal]
        if bindings:
            return
        del patterns[key]
        if acl.pattern_type == PatternType.PREFIXED:
            lengths = self._lengths[acl.resource_type]
            lengths[len(acl.name)] -= 1
            if not lengths[len(acl.name)]:
                del lengths[len(acl.name)]


def _bit(acl: Acl) -> int:
    return 1 << max(acl.operation, 0)  # a code that nobody knows covers its resource, and matches nothing


def _masks_of(bindings: Mapping[str, Mapping[str, _Masks]], askers: Iterable[str], host: str) -> _Masks:
    """All that is allowed and denied to any of `askers` at `host`."""
    allowed = denied = 0
    for asker in askers:
        hosts = bindings.get(asker, _NO_HOSTS)
        for where in (host, WILDCARD):
            masks = hosts.get(where, _NOTHING)
            allowed |= masks[0]
            denied |= masks[1]
    return allowed, denied


def _binding(
    resource_type: int, key: _PatternKey, principal: str, host: str, mask: int, operation: int, permission: int
) -> Acl:
    """The binding behind a verdict: of those in `mask` that decide about `operation`, the nearest."""
    implied_by = [each for each in range(mask.bit_length()) if mask >> each & 1 and _IMPLYING.get(operation, 0) >> each & 1]
    found = next(each for each in (operation, Operation.ALL, *implied_by) if mask >> each & 1)
    return Acl(resource_type, key[1], key[0], principal, host, found, permission)
