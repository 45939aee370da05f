"""A secured broker for tests: TLS, logins and access control by one argument, and the settings of clients that log in.

    with Broker(security=Security(users={"alice": "wonderland"}, acls=True)) as broker:
        broker.client_config("alice")

Certificates are made by an authority of the broker's own, in a temporary folder. The user `admin` may do everything: the
helpers of `Broker` log in as `admin`.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ottla.broker.secure_settings import ADMIN, NODE_NAME, NodeSecurity, client_properties, secured
from ottla.client.admin.acl_types import AclBinding, AclPermission, PatternType
from ottla.testing.arguments import check_kind

if TYPE_CHECKING:
    from ottla.client.admin.acl_types import AclBinding

__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us

MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
ADMIN_PASSWORD: Final = "admin-secret"
"""The same every time: a broker whose data is kept is started with it again."""
CLUSTER: Final = "kafka-cluster"
ITERATIONS: Final = 4096
"""The fewest that Kafka allows: tests need no more."""
Library = Literal["ottla", "java", "confluent-kafka", "kafka-python", "aiokafka"]


@dataclass(frozen=True)
class Security:
    """How a broker for tests is secured: by default with TLS and SCRAM logins, where every user may do everything."""

    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """User → password, beside `admin`, whose password is `admin-secret`."""
    mechanism: str | None = "SCRAM-SHA-512"
    """How clients log in: SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN; None: with a certificate, which needs `tls`."""
    tls: bool = True
    """Whether connections are encrypted."""
    acls: bool = False
    """Whether users need to be allowed what they do, by `Broker.allow`."""

    def __post_init__(self) -> None:
        check_kind("users", self.users, Mapping, "a dict of users and their passwords")
        for name, password in self.users.items():
            check_kind("users", name, str, "names as text")
            check_kind("users", password, str, "passwords as text")
            if not name or any(mark in name for mark in ',="[]') or name == ADMIN:
                raise ValueError(
                    f'users={{{name!r}: …}}: choose another name; {ADMIN} exists already, and , = " [ ] do not work'
                )
        if self.mechanism not in (*MECHANISMS, None):
            raise ValueError(f"mechanism={self.mechanism!r}: give one of {', '.join(MECHANISMS)}, or None for certificates")
        if self.mechanism is None and not self.tls:
            raise ValueError("mechanism=None, tls=False: clients without a login and without certificates are not secured")


class SecuredBroker:
    """The files and settings of one broker with a `Security`."""

    def __init__(self, security: Security) -> None:
        self.security = security
        self.folder: Path | None = None
        self._node = NodeSecurity(
            ADMIN_PASSWORD,
            security.mechanism,
            users=security.users,
            has_acls=security.acls,
        )

    def settings(self, plain: Mapping[str, str]) -> dict[str, str]:
        """The settings of a broker secured; `plain` are those without."""
        if self.security.tls and self.folder is None:
            from ottla.env.real.certificates import Authority

            self.folder = Path(tempfile.mkdtemp(prefix="ottla-testing-tls-"))
            authority = Authority.create(self.folder)
            node = authority.issue(NODE_NAME, ["localhost", "127.0.0.1"])
            self._node = self._node._replace(ca_file=str(authority.ca_file), node_file=str(node))
        return secured(plain, self._node)

    @property
    def scram(self) -> list[str]:
        """The users that a new broker begins with, in the notation of `--add-scram`."""
        mechanism = self.security.mechanism
        if mechanism is None or not mechanism.startswith("SCRAM"):
            return []
        users = {ADMIN: ADMIN_PASSWORD, **self.security.users}
        return [scram_argument(mechanism, name, password) for name, password in users.items()]

    def client_config(self, user: str = ADMIN, password: str | None = None, library: Library = "ottla") -> dict[str, Any]:
        """The settings with which a client of `library` logs in as `user`."""
        if password is None:
            password = {ADMIN: ADMIN_PASSWORD, **self.security.users}.get(user, "")
        found = client_properties(self._node, user, password)
        certificate = self._certificate(user) if self.security.mechanism is None else None
        if library in ("ottla", "java"):
            if certificate is not None:
                found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificate}
            return dict(found)
        return _for_library(library, self._node, user, password, certificate)

    def _certificate(self, user: str) -> str:
        from ottla.env.real.certificates import Authority

        assert self.folder is not None, "the broker was started"
        file = self.folder / f"{user}.pem"
        return str(file if file.exists() else Authority.load(self.folder).issue(user))

    def remove(self) -> None:
        """Remove the certificates."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


def rules_of(
    is_allowed: bool, user: str, operations: Sequence[str], names: Mapping[str, str | None], prefixed: bool
) -> list[AclBinding]:
    """The rules that `Broker.allow` and `Broker.deny` add."""
    check_kind("user", user, str, "a user's name")
    given = {kind: name for kind, name in names.items() if name is not None}
    if not operations:
        raise TypeError("no operation was given: name some, such as read, write or all")
    if not given:
        raise TypeError("nothing was named: give topic=…, group=…, transactional_id=… or cluster=True")
    for kind, name in given.items():
        check_kind(kind, name, str, "a name, or * for all")
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    permission = AclPermission.ALLOW if is_allowed else AclPermission.DENY
    principal = user if ":" in user else f"User:{user}"
    return [
        AclBinding(
            kind,
            name if kind != "cluster" else CLUSTER,
            principal,
            operation,
            permission,
            pattern_type=PatternType.LITERAL if kind == "cluster" or name == "*" else pattern,
        )
        for kind, name in given.items()
        for operation in operations
    ]


def scram_argument(mechanism: str, user: str, password: str) -> str:
    """A user in the notation of `--add-scram`, which has no way to quote a password: so it is salted already."""
    salt = base64.b64encode(hashlib.sha256(user.encode()).digest()).decode()
    hash_name = "sha512" if mechanism.endswith("512") else "sha256"
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), base64.b64decode(salt), ITERATIONS)
    word = base64.b64encode(salted).decode()
    return f"{mechanism}=[name={user},iterations={ITERATIONS},salt={salt},saltedpassword={word}]"


def _for_library(library: Library, node: NodeSecurity, user: str, password: str, certificate: str | None) -> dict[str, Any]:
    if library == "confluent-kafka":
        found: dict[str, Any] = {"security.protocol": node.protocol}
        if node.mechanism is not None:
            found |= {"sasl.mechanism": node.mechanism, "sasl.username": user, "sasl.password": password}
        if node.ca_file is not None:
            found["ssl.ca.location"] = node.ca_file
        if certificate is not None:
            found |= {"ssl.certificate.location": certificate, "ssl.key.location": certificate}
        return found
    found = {"security_protocol": node.protocol}
    if node.mechanism is not None:
        found |= {"sasl_mechanism": node.mechanism, "sasl_plain_username": user, "sasl_plain_password": password}
    if library == "kafka-python":
        if node.ca_file is not None:
            found["ssl_cafile"] = node.ca_file
        return found | ({} if certificate is None else {"ssl_certfile": certificate, "ssl_keyfile": certificate})
    if library != "aiokafka":
        raise ValueError(f"library={library!r}: give ottla, java, confluent-kafka, kafka-python or aiokafka")
    if node.ca_file is not None:
        import ssl

        context = ssl.create_default_context(cafile=node.ca_file)
        if certificate is not None:
            context.load_cert_chain(certificate)
        found["ssl_context"] = context
    return found
