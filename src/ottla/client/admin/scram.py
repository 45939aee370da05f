"""SCRAM credentials of users: describe and alter. The salted password is computed here: the password is never sent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from ottla.client.admin.checks import listed, member, member_or_unknown, number, text, texts
from ottla.client.admin.requests import raise_refused, refused, refused_or, to_controller
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster
from ottla.errors import ArgumentError, KafkaError
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

DEFAULT_ITERATIONS = 4096
_HASHES = {1: "sha256", 2: "sha512"}


class ScramMechanism(IntEnum):
    """The mechanisms that Kafka has, by the protocol's numbers."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


class ScramCredential(NamedTuple):
    """A user's credential as a broker shows it."""

    mechanism: ScramMechanism
    iterations: int


class ScramUpsertion(NamedTuple):
    """A credential to set. Without a salt, a random one is made."""

    user: str
    mechanism: ScramMechanism | str
    password: str | bytes
    iterations: int = DEFAULT_ITERATIONS
    salt: bytes | None = None

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.user!r}, {self.mechanism!r}, password hidden, iterations={self.iterations})"


class ScramDeletion(NamedTuple):
    """A credential to delete."""

    user: str
    mechanism: ScramMechanism | str


async def describe_user_scram_credentials(
    cluster: Cluster, users: Iterable[str] | None = None
) -> Results[str, list[ScramCredential]]:
    """The credentials of users (None: of all that have any), in the order of their mechanisms."""
    wanted = None if users is None else texts(users, "users")
    if wanted == []:
        return Results({})
    asked = None if wanted is None else [UserName(name=name) for name in wanted]

    async def attempt() -> DescribeUserScramCredentialsResponse:
        response: DescribeUserScramCredentialsResponse = await cluster.ask_any(DescribeUserScramCredentialsRequest(users=asked))
        raise_refused(response.error_code, "the SCRAM credentials cannot be described", response.error_message)
        return response

    found: dict[str, list[ScramCredential] | KafkaError] = {}
    for each in (await cluster.retrying(attempt)).results:
        if each.error_code:
            found[each.user] = refused(each.error_code, f"the SCRAM credentials of user {each.user}", each.error_message)
            continue
        # Apache Kafka answers in the order of a hash map, which differs from start to start.
        found[each.user] = sorted(
            ScramCredential(member_or_unknown(ScramMechanism, info.mechanism), info.iterations)
            for info in each.credential_infos
        )
    return results_for(sorted(found) if wanted is None else wanted, found)


async def alter_user_scram_credentials(
    cluster: Cluster, alterations: Iterable[ScramUpsertion | ScramDeletion]
) -> Results[str, None]:
    """Set and delete credentials. Kafka takes one change of a user in a call; a second is a `DuplicateResourceError`."""
    checked = [_checked(each) for each in listed(alterations, "alterations")]
    users = list(dict.fromkeys(each.user for each in checked))
    upsertions = [_upsertion(cluster, each) for each in checked if isinstance(each, ScramUpsertion)]
    deletions = [
        ScramCredentialDeletion(name=each.user, mechanism=int(each.mechanism))
        for each in checked
        if isinstance(each, ScramDeletion)
    ]

    async def ask(names: list[str]) -> dict[str, KafkaError | None]:
        request = AlterUserScramCredentialsRequest(
            deletions=[each for each in deletions if each.name in names],
            upsertions=[each for each in upsertions if each.name in names],
        )
        response: AlterUserScramCredentialsResponse = await cluster.ask_controller(request)
        return {
            each.user: refused_or(
                each.error_code, f"the SCRAM credentials of user {each.user} were not changed", each.error_message, None
            )
            for each in response.results
        }

    return results_for(users, await to_controller(cluster, users, ask) if users else {})


def _checked(change: ScramUpsertion | ScramDeletion) -> ScramUpsertion | ScramDeletion:
    if not isinstance(change, ScramUpsertion | ScramDeletion):
        raise TypeError(f"alterations: a change is a ScramUpsertion or a ScramDeletion, not {type(change).__name__}")
    text(change.user, "alterations: user")
    mechanism = member(ScramMechanism, change.mechanism, "alterations: mechanism")
    if mechanism is ScramMechanism.UNKNOWN:
        raise ArgumentError("alterations: mechanism must be SCRAM-SHA-256 or SCRAM-SHA-512")
    if isinstance(change, ScramUpsertion):
        number(change.iterations, "alterations: iterations", 1)
        if not isinstance(change.password, str | bytes) or not change.password:
            raise ArgumentError(f"alterations: password of user {change.user} must be a text or bytes, and not empty")
    return change._replace(mechanism=mechanism)


def _upsertion(cluster: Cluster, change: ScramUpsertion) -> ScramCredentialUpsertion:
    mechanism = member(ScramMechanism, change.mechanism, "alterations: mechanism")
    randomness = cluster.world.randomness
    salt = randomness.new_uuid() + randomness.new_uuid() if change.salt is None else change.salt
    return ScramCredentialUpsertion(
        name=change.user,
        mechanism=mechanism,
        iterations=change.iterations,
        salt=salt,
        salted_password=salted_password(mechanism, change.password, salt, change.iterations),
    )


def salted_password(mechanism: ScramMechanism, password: str | bytes, salt: bytes, iterations: int) -> bytes:
    """`SaltedPassword` of RFC 5802: what a broker derives the stored key and the server key from."""
    data = password.encode() if isinstance(password, str) else password
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], data, salt, iterations)
