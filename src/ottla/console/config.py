"""The console's configuration file: clusters, logins, roles, masking, audit. YAML; mistakes name the line and the key.

clusters:
  - name: prod
    bootstrap.servers: kafka-1:9092,kafka-2:9092
    command-config: /etc/ottla/prod.properties
    schema-registry: http://registry:8081
    read-only: true
  - name: test
    bootstrap.servers: localhost:9092
login:
  header: X-Forwarded-User
  groups-header: X-Forwarded-Groups
  trusted: [10.0.0.0/8]
  editors: [kafka-admins]
masking:
  - {topics: "orders*", path: $.customer.email, how: hash}
audit-topic: console-audit
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ottla.console.access import Access, OpenIdLogin, Provider, ProxyLogin, Roles
from ottla.console.masking import Rule, rule_of
from ottla.errors import ArgumentError, OttlaError
from ottla.errors.texts import near_words

T = TypeVar("T")

CLUSTER_KEYS = ("name", "bootstrap.servers", "command-config", "properties", "schema-registry", "read-only")
LOGIN_KEYS = ("header", "groups-header", "trusted", "openid", "editors", "viewers")
OPENID_KEYS = ("issuer", "client-id", "client-secret", "scopes", "name-claim", "groups-claim", "address")
MASKING_KEYS = ("topics", "part", "path", "how")
KEYS = ("clusters", "login", "masking", "audit-topic", "allow-changes", "sql", "pipelines", "allowed-hosts")


class BadConfig(OttlaError):
    """A mistake in the file: where it is, and what to write."""


class ClusterEntry(NamedTuple):
    """A cluster of the file."""

    name: str
    properties: Mapping[str, str]
    """Client settings by Kafka's names; references are not resolved yet."""
    command_config: str | None = None
    registry: str | None = None
    is_read_only: bool = False
    line: int = 0


@dataclass(slots=True)
class ConsoleConfig:
    """What the file says."""

    clusters: list[ClusterEntry] = field(default_factory=list)
    access: Access | None = None
    rules: list[Rule] = field(default_factory=list)
    audit_topic: str | None = None
    allows_changes: bool | None = None
    runs_sql: bool = False
    pipelines: list[str] = field(default_factory=list)
    """Addresses of the metrics of pipelines' runs."""
    hosts: list[str] = field(default_factory=list)


def read_config(path: Path, resolve: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda given: given) -> ConsoleConfig:
    """The file. `resolve` replaces references to secrets in texts. Raises `BadConfig`."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadConfig(f"{path} is not UTF-8 text") from None
    return parse_config(text, str(path), resolve)


def parse_config(
    text: str, where: str, resolve: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda given: given
) -> ConsoleConfig:
    """The configuration in a text; `where` names it in errors."""
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark is not None else 1
        raise BadConfig(f"{where}, line {line}: this is not YAML: {problem.problem}") from None
    except yaml.YAMLError as problem:
        raise BadConfig(f"{where} is not YAML: {problem}") from None
    if root is None:
        raise BadConfig(
            f"{where} is empty: name at least the clusters, for example clusters: [{{bootstrap.servers: host:9092}}]"
        )
    return _config(_Node(where, "", root, yaml), resolve)


class _Node:
    """A value of the file with its place."""

    def __init__(self, where: str, key: str, node: Any, yaml: Any) -> None:
        self._where = where
        self._yaml = yaml
        self.key = key
        self.node = node

    @property
    def line(self) -> int:
        return int(self.node.start_mark.line) + 1

    def bad(self, text: str) -> BadConfig:
        return BadConfig(f"{self._where}, line {self.line}: {f'{self.key}: ' if self.key else ''}{text}")

    def _child(self, key: str, node: Any) -> _Node:
        return _Node(self._where, key, node, self._yaml)

    def fields(self, known: Sequence[str] | None) -> dict[str, _Node]:
        """The fields of a mapping; None: any."""
        if not isinstance(self.node, self._yaml.MappingNode):
            raise self.bad(f"fields are expected here: {', '.join(known or ('name: value',))}")
        found: dict[str, _Node] = {}
        for key_node, node in self.node.value:
            name = str(key_node.value) if isinstance(key_node, self._yaml.ScalarNode) else ""
            full = f"{self.key}.{name}" if self.key else name
            if known is not None and name not in known:
                near = near_words(name, known)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
                raise self._child(full, key_node).bad(f"there is no such key: {hint}")
            if name in found:
                raise self._child(full, key_node).bad("it is given twice")
            found[name] = self._child(full, node)
        return found

    def items(self) -> Iterator[_Node]:
        if not isinstance(self.node, self._yaml.SequenceNode):
            raise self.bad("a list is expected here: begin each entry with -")
        for index, each in enumerate(self.node.value):
            yield self._child(f"{self.key}[{index}]", each)

    def text(self) -> str:
        if not isinstance(self.node, self._yaml.ScalarNode) or self.node.tag.endswith(":null"):
            raise self.bad("a text is expected here")
        return str(self.node.value)

    def texts(self) -> list[str]:
        """A list of texts, or one."""
        if isinstance(self.node, self._yaml.ScalarNode):
            return [self.text()]
        return [each.text() for each in self.items()]

    def flag(self) -> bool:
        if not isinstance(self.node, self._yaml.ScalarNode) or not self.node.tag.endswith(":bool"):
            raise self.bad("true or false is expected here")
        return str(self.node.value).lower() in ("true", "yes", "on")


def _config(root: _Node, resolve: Callable[[Mapping[str, str]], Mapping[str, str]]) -> ConsoleConfig:
    fields = root.fields(KEYS)
    config = ConsoleConfig()
    if "clusters" in fields:
        for each in fields["clusters"].items():
            entry = _cluster(each)
            if any(entry.name == other.name for other in config.clusters):
                raise each.bad(f"there are two clusters {entry.name}: give them names")
            config.clusters.append(entry)
    if "login" in fields:
        config.access = _login(fields["login"], resolve)
    for each in fields["masking"].items() if "masking" in fields else ():
        try:
            config.rules.append(rule_of({name: one.text() for name, one in each.fields(MASKING_KEYS).items()}))
        except ArgumentError as problem:
            raise each.bad(str(problem)) from None
    if "audit-topic" in fields:
        config.audit_topic = fields["audit-topic"].text()
    if "allow-changes" in fields:
        config.allows_changes = fields["allow-changes"].flag()
    if "sql" in fields:
        config.runs_sql = fields["sql"].flag()
    config.pipelines = fields["pipelines"].texts() if "pipelines" in fields else []
    config.hosts = fields["allowed-hosts"].texts() if "allowed-hosts" in fields else []
    return config


def _cluster(node: _Node) -> ClusterEntry:
    fields = node.fields(CLUSTER_KEYS)
    properties = {}
    if "properties" in fields:
        properties = {name: each.text() for name, each in fields["properties"].fields(None).items()}
    if "bootstrap.servers" in fields:
        properties["bootstrap.servers"] = fields["bootstrap.servers"].text()
    if "bootstrap.servers" not in properties and "command-config" not in fields:
        raise node.bad("the cluster has no address: write bootstrap.servers: host:9092")
    name = fields["name"].text() if "name" in fields else properties.get("bootstrap.servers", "").partition(",")[0]
    if not name:
        raise node.bad("the cluster has no name: write name: prod")
    return ClusterEntry(
        name,
        properties,
        fields["command-config"].text() if "command-config" in fields else None,
        fields["schema-registry"].text() if "schema-registry" in fields else None,
        "read-only" in fields and fields["read-only"].flag(),
        node.line,
    )


def _login(node: _Node, resolve: Callable[[Mapping[str, str]], Mapping[str, str]]) -> Access:
    fields = node.fields(LOGIN_KEYS)
    roles = Roles(
        frozenset(fields["editors"].texts() if "editors" in fields else ()),
        frozenset(fields["viewers"].texts() if "viewers" in fields else ()),
    )
    if ("header" in fields) == ("openid" in fields):
        raise node.bad("name one way to log in: header (and trusted), or openid")
    if "openid" in fields:
        given = fields["openid"].fields(OPENID_KEYS)
        for needed in ("issuer", "client-id"):
            if needed not in given:
                raise fields["openid"].bad(f"{needed} is missing")
        texts = dict(resolve({each.key: each.text() for each in given.values()}))
        names = {name.rpartition(".")[2]: value for name, value in texts.items()}
        default = Provider("", "")
        return OpenIdLogin(
            Provider(
                names["issuer"],
                names["client-id"],
                names.get("client-secret", ""),
                names.get("scopes", default.scopes),
                names.get("name-claim", default.name_claim),
                names.get("groups-claim", default.groups_claim),
                names.get("address", ""),
            ),
            roles,
        )
    if "trusted" not in fields:
        raise node.bad("trusted is missing: the addresses of the proxy, such as trusted: [127.0.0.1]")
    networks = []
    for text in fields["trusted"].texts():
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise fields["trusted"].bad(f"{text!r} is no address or network: write 10.0.0.5 or 10.0.0.0/8") from None
    groups = fields["groups-header"].text() if "groups-header" in fields else None
    return ProxyLogin(fields["header"].text(), groups, tuple(networks), roles)
