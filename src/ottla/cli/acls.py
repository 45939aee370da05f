"""The `acls` verb: access control lists. Adds, removes and lists rules, and says what they mean for one request.

A resource is written `topic:orders`, a prefix `topic:orders-*`, everything `topic:*`; the cluster is `cluster`. Kafka's flags
(`--allow-principal User:alice --operation Read --topic orders`) work too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import click

from ottla.cli.common.completion import complete_words
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.options import cluster_options, json_option, plain_option, refused, wide_option, yes_option
from ottla.cli.common.output import confirm, is_for_people, print_json, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.spelling import Actions
from ottla.client.admin.acl_types import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from ottla.client.admin.acls import create_acls, delete_acls, describe_acls
from ottla.client.admin.checks import member
from ottla.client.admin.configs import ConfigResource, ConfigResourceType, describe_configs
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import listed

F = TypeVar("F", bound=Callable[..., Any])

CLUSTER_NAME: Final = "kafka-cluster"
EVERYBODY: Final = "User:*"
TYPES: Final = {
    "topic": AclResourceType.TOPIC,
    "group": AclResourceType.GROUP,
    "cluster": AclResourceType.CLUSTER,
    "transactional-id": AclResourceType.TRANSACTIONAL_ID,
    "delegation-token": AclResourceType.DELEGATION_TOKEN,
    "user": AclResourceType.USER,
}
OPERATIONS: Final = {
    "".join(word.capitalize() for word in each.name.split("_")): each for each in AclOperation if each > AclOperation.ANY
}
"""In Kafka's spelling: `DescribeConfigs`."""
IMPLIED: Final = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}
"""Operation → those that include it, if they are allowed. Denying one of them denies nothing else."""

Resource = tuple[AclResourceType, str, PatternType]


# Words


def parse_principal(text: str) -> str:
    """`alice` is `User:alice`."""
    return text if ":" in text else f"User:{text}"


def parse_operation(text: str) -> AclOperation:
    plain = text.strip().replace("-", "").replace("_", "").lower()
    for name, operation in OPERATIONS.items():
        if name.lower() == plain:
            return operation
    raise click.UsageError(f"{text!r} is no operation: choose from {', '.join(OPERATIONS)}")


def parse_resource(text: str, pattern: str | None = None) -> Resource:
    """`topic:orders`, `topic:orders-*`, `topic:*` or `cluster`. `pattern` says how the name is meant, if it is given."""
    kind, colon, name = text.partition(":")
    type_ = TYPES.get(kind.lower().replace("_", "-"))
    if type_ is None or (not name and type_ is not AclResourceType.CLUSTER):
        raise click.UsageError(f"{text!r} is no resource: write topic:orders, group:billing, transactional-id:x or cluster")
    if type_ is AclResourceType.CLUSTER and not colon:
        name = CLUSTER_NAME
    if pattern is not None:
        return type_, name, PatternType[pattern.upper()]
    if name.endswith("*") and name != "*":
        return type_, name[:-1], PatternType.PREFIXED
    return type_, name, PatternType.LITERAL


def _text_of(resource: Resource) -> str:
    type_, name, pattern = resource
    kind = type_.name.lower().replace("_", "-")
    return "cluster" if type_ is AclResourceType.CLUSTER else f"{kind}:{name}{'*' if pattern is PatternType.PREFIXED else ''}"


def _operation_text(operation: AclOperation) -> str:
    return next((name for name, each in OPERATIONS.items() if each is operation), operation.name)


# Kafka's flags

_RESOURCE_FLAGS = {"topic": "topic", "group": "group", "transactional_id": "transactional-id"}
_MORE_FLAGS = {"delegation_token": "delegation-token", "user_principal": "user"}


def kafka_options(function: F) -> F:
    """Kafka's flags for rules; the function gets them as `**kafka`."""
    options = (
        click.option("--allow-principal", multiple=True, metavar="P", help="Kafka's spelling: these may."),
        click.option("--deny-principal", multiple=True, metavar="P", help="Kafka's spelling: these may not."),
        click.option("--allow-host", multiple=True, metavar="IP", help="From these hosts.  [default: all]"),
        click.option("--deny-host", multiple=True, metavar="IP", help="Not from these hosts.  [default: all]"),
        click.option("--operation", multiple=True, metavar="OP", help="Kafka's spelling of OPERATIONS."),
        *(
            click.option(f"--{name.replace('_', '-')}", multiple=True, metavar="NAME", help=f"Kafka's spelling of {kind}:NAME.")
            for name, kind in (_RESOURCE_FLAGS | _MORE_FLAGS).items()
        ),
        click.option("--cluster", is_flag=True, help="Kafka's spelling of cluster."),
        click.option(
            "--resource-pattern-type",
            type=click.Choice(["literal", "prefixed", "any", "match"], case_sensitive=False),
            help="How names are meant; any and match are for list and remove.",
        ),
        click.option("--producer", is_flag=True, help="Write, Describe and Create on --topic."),
        click.option("--consumer", is_flag=True, help="Read and Describe on --topic, Read on --group."),
        click.option("--idempotent", is_flag=True, help="With --producer: IdempotentWrite on the cluster."),
        refused("--authorizer-properties", "there is no ZooKeeper: rules are changed through a broker (-b)"),
    )
    for option in reversed(options):
        function = option(function)
    return function


def kafka_resources(kafka: Mapping[str, Any]) -> list[Resource]:
    """The resources that Kafka's flags name."""
    pattern = PatternType[(kafka["resource_pattern_type"] or "literal").upper()]
    found: list[Resource] = [
        (TYPES[kind], name, pattern) for flag, kind in (_RESOURCE_FLAGS | _MORE_FLAGS).items() for name in kafka[flag]
    ]
    if kafka["cluster"]:
        found.append((AclResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    return found


def kafka_rules(kafka: Mapping[str, Any]) -> list[AclBinding]:
    """The rules that Kafka's flags mean."""
    wanted: list[tuple[Resource, AclOperation]] = []
    resources = kafka_resources(kafka)
    if kafka["producer"] or kafka["consumer"]:
        if kafka["operation"]:
            raise click.UsageError("--producer and --consumer say which operations: leave --operation out")
        wanted += _convenient(kafka, resources)
    else:
        operations = [parse_operation(each) for each in kafka["operation"]] or [AclOperation.ALL]
        wanted += [(resource, operation) for resource in resources for operation in operations]
    if not wanted:
        raise click.UsageError("name a resource: topic:orders, group:billing, cluster (Kafka: --topic, --group, --cluster)")
    rules = []
    for flag, permission in (("allow", AclPermission.ALLOW), ("deny", AclPermission.DENY)):
        for principal in kafka[f"{flag}_principal"]:
            rules += [
                AclBinding(type_, name, parse_principal(principal), operation, permission, host, pattern)
                for (type_, name, pattern), operation in wanted
                for host in kafka[f"{flag}_host"] or ("*",)
            ]
    if not rules:
        raise click.UsageError("say who: --allow-principal User:alice or --deny-principal User:alice")
    return rules


def _convenient(kafka: Mapping[str, Any], resources: Sequence[Resource]) -> list[tuple[Resource, AclOperation]]:
    """What a producer or a consumer needs."""
    topics = [each for each in resources if each[0] is AclResourceType.TOPIC]
    groups = [each for each in resources if each[0] is AclResourceType.GROUP]
    ids = [each for each in resources if each[0] is AclResourceType.TRANSACTIONAL_ID]
    if not topics:
        raise click.UsageError("--producer and --consumer need a --topic")
    found = []
    if kafka["producer"]:
        found += [(each, op) for each in topics for op in (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)]
        found += [(each, op) for each in ids for op in (AclOperation.WRITE, AclOperation.DESCRIBE)]
        if kafka["idempotent"]:
            found.append(((AclResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL), AclOperation.IDEMPOTENT_WRITE))
    if kafka["consumer"]:
        if not groups:
            raise click.UsageError("--consumer needs a --group")
        found += [(each, op) for each in topics for op in (AclOperation.READ, AclOperation.DESCRIBE)]
        found += [(each, AclOperation.READ) for each in groups]
    return list(dict.fromkeys(found))


# add, remove

ADD_EXAMPLES = """\b
Examples:
  ottla acls add alice read,describe topic:orders
  ottla acls add alice write 'topic:orders-*'              every topic whose name begins with orders-
  ottla acls add '*' read topic:news                       everybody
  ottla acls add mallory all 'topic:*' --deny --host 10.0.0.7
  ottla acls add --allow-principal User:alice --producer --topic orders       Kafka's spelling
"""

_ARGUMENTS = (
    click.argument("resource", required=False, metavar="[RESOURCE]", shell_complete=complete_words(*(f"{k}:" for k in TYPES))),
    click.argument("operations", required=False, metavar="[OPERATIONS]", shell_complete=complete_words(*OPERATIONS)),
    click.argument("principal", required=False, metavar="[PRINCIPAL]"),
)


def _rule_arguments(function: F) -> F:
    function = click.option("--deny", is_flag=True, help="The rule denies; it wins over every rule that allows.")(function)
    function = click.option("--host", "hosts", multiple=True, metavar="IP", help="Only from this address. Repeatable.")(
        function
    )
    for argument in _ARGUMENTS:
        function = argument(function)
    return function


def _rules(
    principal: str | None, operations: str | None, resource: str | None, deny: bool, hosts: Sequence[str], kafka: dict[str, Any]
) -> list[AclBinding]:
    """The rules that the arguments mean, in either spelling."""
    if principal is None:
        return kafka_rules(kafka)
    if resource is None or operations is None:
        raise click.UsageError("write PRINCIPAL OPERATIONS RESOURCE: ottla acls add alice read,describe topic:orders")
    type_, name, pattern = parse_resource(resource, kafka["resource_pattern_type"])
    permission = AclPermission.DENY if deny else AclPermission.ALLOW
    return [
        AclBinding(type_, name, parse_principal(principal), parse_operation(each), permission, host, pattern)
        for each in operations.split(",")
        for host in hosts or ("*",)
    ]


@click.command("add", epilog=ADD_EXAMPLES)
@_rule_arguments
@kafka_options
@json_option
@plain_option
@cluster_options()
@click.option("--force", is_flag=True, hidden=True)
def add(
    settings: ClientSettings,
    principal: str | None,
    operations: str | None,
    resource: str | None,
    deny: bool,
    hosts: tuple[str, ...],
    as_json: bool,
    plain: bool,
    force: bool,
    **kafka: Any,
) -> None:
    """Allow, or with --deny forbid, PRINCIPAL to do OPERATIONS on RESOURCE.

    PRINCIPAL is a user's name, or such as User:CN=alice. A rule that exists already stays as it is.
    """
    rules = _rules(principal, operations, resource, deny, hosts, kafka)
    with_cluster(settings, lambda cluster: create_acls(cluster, rules)).raise_first()
    if as_json:
        print_json([as_json_object(each) for each in rules])
    elif is_for_people(as_json, plain):
        for each in rules:
            say(f"Added: {sentence(each)}")
    else:
        print_lines("Adding ACLs for resource", rules)


REMOVE_EXAMPLES = """\b
Examples:
  ottla acls remove alice read topic:orders
  ottla acls remove --principal User:alice                  all rules for alice
  ottla acls remove --topic orders                          all rules of a topic
"""


@click.command("remove", epilog=REMOVE_EXAMPLES)
@_rule_arguments
@click.option("--principal", "principals", multiple=True, metavar="P", help="All rules for this principal. Repeatable.")
@kafka_options
@yes_option
@click.option("--force", "is_forced", is_flag=True, help="Kafka's spelling of --yes.")
@json_option
@plain_option
@cluster_options()
def remove(
    settings: ClientSettings,
    principal: str | None,
    operations: str | None,
    resource: str | None,
    deny: bool,
    hosts: tuple[str, ...],
    principals: tuple[str, ...],
    yes: bool,
    is_forced: bool,
    as_json: bool,
    plain: bool,
    **kafka: Any,
) -> int:
    """Remove rules: one, or all that the flags name. Without a terminal no question is asked."""
    filters: list[AclFilter]
    if principal is not None or kafka["allow_principal"] or kafka["deny_principal"]:
        filters = [AclFilter(*each) for each in _rules(principal, operations, resource, deny, hosts, kafka)]
    else:
        filters = _filters(principals, kafka)
        if filters == [AclFilter()]:
            raise click.UsageError("say which rules: alice read topic:orders, --principal User:alice, or --topic orders")

    async def find(cluster: Cluster) -> list[AclBinding]:
        return [rule for each in filters for rule in await describe_acls(cluster, each)]

    rules = sorted(dict.fromkeys(with_cluster(settings, find)))
    if not rules:
        warn("no rule matches: nothing was removed")
        return 1
    if not (yes or is_forced):
        for each in rules:
            say(sentence(each), err=True)
        confirm(f"Remove {'this rule' if len(rules) == 1 else f'these {len(rules)} rules'}?", yes)
    with_cluster(settings, lambda cluster: delete_acls(cluster, rules)).raise_first()
    if as_json:
        print_json([as_json_object(each) for each in rules])
    elif is_for_people(as_json, plain):
        for each in rules:
            say(f"Removed: {sentence(each)}")
    else:
        print_lines("Removing ACLs for resource", rules)
    return 0


def _filters(principals: Sequence[str], kafka: Mapping[str, Any]) -> list[AclFilter]:
    """The filters of list and remove. Without a pattern type, a name means its literal rules, as in Kafka's tool."""
    found: list[AclFilter] = []
    resources: list[tuple[AclResourceType, str | None, PatternType]] = list(kafka_resources(kafka))
    for type_, name, pattern in resources or [(AclResourceType.ANY, None, PatternType.ANY)]:
        for principal in principals or (None,):
            who = None if principal is None else parse_principal(principal)
            found += [
                AclFilter(type_, name, who, operation, AclPermission.ANY, None, pattern)
                for operation in [parse_operation(each) for each in kafka["operation"]] or [AclOperation.ANY]
            ]
    return found


# list

LIST_EXAMPLES = """\b
Examples:
  ottla acls list
  ottla acls list --principal alice
  ottla acls list topic:orders                              every rule that applies to the topic
  ottla acls list --topic orders --resource-pattern-type match                Kafka's spelling
"""


@click.command("list", epilog=LIST_EXAMPLES)
@click.argument("resources", nargs=-1, metavar="[RESOURCES]...")
@click.option("--principal", "principals", multiple=True, metavar="P", help="Only rules for this principal. Repeatable.")
@kafka_options
@json_option
@plain_option
@wide_option
@cluster_options()
def list_command(
    settings: ClientSettings,
    resources: tuple[str, ...],
    principals: tuple[str, ...],
    as_json: bool,
    plain: bool,
    **kafka: Any,
) -> None:
    """List the rules: all, those that apply to RESOURCES, or those for a principal."""
    filters = _filters(principals, kafka)
    if resources:
        whos: list[str | None] = [*map(parse_principal, principals)] or [None]
        filters = [
            AclFilter(*parse_resource(each, "literal")[:2], who, pattern_type=PatternType.MATCH)
            for each in resources
            for who in whos
        ]

    async def find(cluster: Cluster) -> list[AclBinding]:
        return [rule for each in filters for rule in await describe_acls(cluster, each)]

    rules = sorted(dict.fromkeys(with_cluster(settings, find)))
    if as_json:
        print_json([as_json_object(each) for each in rules])
    elif not is_for_people(as_json, plain):
        print_lines("Current ACLs for resource", rules)
    elif rules:
        print_table(None, ("Principal", "Permission", "Operation", "Resource", "~Host"), [_row(each) for each in rules])
    else:
        say("There are no rules.")


# check


class Verdict(NamedTuple):
    """Whether something is allowed, and why."""

    is_allowed: bool
    reason: str
    rule: AclBinding | None = None


def decide(
    rules: Iterable[AclBinding], principal: str, host: str | None, operation: AclOperation, allows_without: bool
) -> Verdict:
    """What the rules that cover a resource mean, as Kafka's authorizer decides. `allows_without`: if there are none at all."""
    allowing: AclBinding | None = None
    is_covered = False
    for rule in sorted(rules):
        is_covered = True
        if rule.principal not in (principal, EVERYBODY) or rule.host not in ("*", host):
            continue
        is_denial = rule.permission == AclPermission.DENY
        if rule.operation not in (operation, AclOperation.ALL) and (
            is_denial or rule.operation not in IMPLIED.get(operation, ())
        ):
            continue
        if is_denial:
            return Verdict(False, "a rule denies it", rule)
        allowing = allowing or rule
    if allowing is not None:
        return Verdict(True, "a rule allows it", allowing)
    if is_covered:
        return Verdict(False, "no rule allows it")
    if allows_without:
        return Verdict(True, "no rule is about the resource, and allow.everyone.if.no.acl.found is true")
    return Verdict(False, "no rule is about the resource")


CHECK_EXAMPLES = """\b
Examples:
  ottla acls check alice read topic:orders
  ottla acls check User:CN=billing describe group:billing --host 10.0.0.7
"""


@click.command("check", epilog=CHECK_EXAMPLES)
@click.argument("principal")
@click.argument("operation", shell_complete=complete_words(*OPERATIONS))
@click.argument("resource", shell_complete=complete_words(*(f"{k}:" for k in TYPES)))
@click.option("--host", metavar="IP", help="From this address. Without it, rules for single addresses do not count.")
@json_option
@plain_option
@cluster_options()
def check(
    settings: ClientSettings, principal: str, operation: str, resource: str, host: str | None, as_json: bool, plain: bool
) -> int:
    """Say whether PRINCIPAL may do OPERATION on RESOURCE, and by which rule.

    The exit code is 0 if it is allowed and 1 if not. Brokers keep their setting super.users to themselves, so what is said is
    by the rules alone: a super user may do everything.
    """
    who, wanted = parse_principal(principal), parse_operation(operation)
    type_, name, _ = parse_resource(resource, "literal")

    async def ask(cluster: Cluster) -> tuple[Verdict, list[AclBinding]]:
        known = await _broker_settings(cluster)
        try:
            rules = await describe_acls(cluster, AclFilter(type_, name, pattern_type=PatternType.MATCH))
        except KafkaError as error:
            if error.code != ErrorCode.SECURITY_DISABLED:
                raise
            return Verdict(True, "the cluster has no authorizer (authorizer.class.name): everybody may do everything"), []
        if who in [each.strip() for each in (known.get("super.users") or "").split(";")]:
            return Verdict(True, f"{who} is a super user (super.users)"), rules
        allows_without = (known.get("allow.everyone.if.no.acl.found") or "").strip().lower() == "true"
        verdict = decide(rules, who, host, wanted, allows_without)
        asked = ("super.users", "allow.everyone.if.no.acl.found")
        hidden: list[str] = [name for name in asked if name in known and known[name] is None]
        if hidden and not verdict.is_allowed:
            warn(
                f"brokers do not show {listed(hidden)}, which a server.properties has here: "
                f"if {who} is a super user, it may do everything"
            )
        return verdict, rules

    verdict, rules = with_cluster(settings, ask)
    elsewhere = sorted({each.host for each in rules if each.host not in ("*", host) and each.principal in (who, EVERYBODY)})
    if as_json:
        rule = None if verdict.rule is None else as_json_object(verdict.rule)
        print_json({"allowed": verdict.is_allowed, "reason": verdict.reason, "rule": rule})
        return 0 if verdict.is_allowed else 1
    action = f"{_operation_text(wanted)} on {_text_of((type_, name, PatternType.LITERAL))}"
    say(f"{'allowed' if verdict.is_allowed else 'denied'}: {who}, {action}: {verdict.reason}")
    if verdict.rule is not None:
        say(f"  {sentence(verdict.rule)}")
    if elsewhere:
        warn(f"other rules are for single addresses ({', '.join(elsewhere)}): --host ADDRESS asks for one")
    return 0 if verdict.is_allowed else 1


async def _broker_settings(cluster: Cluster) -> dict[str, str | None]:
    """What a broker shows of the authorizer's settings; nothing if this principal may not see them."""
    await cluster.metadata([])
    resource = ConfigResource(ConfigResourceType.BROKER, str(min(cluster.brokers)))
    try:
        found = (await describe_configs(cluster, [resource])).raise_first()[resource]
    except KafkaError as error:
        warn(f"super users and allow.everyone.if.no.acl.found are not known: {explain(error)}")
        return {}
    return {name: entry.value for name, entry in found.items()}


# Output


def _row(rule: AclBinding) -> tuple[str, ...]:
    words = words_of(rule)
    return rule.principal, words.permission_type.capitalize(), _operation_of(words), _resource_of(words), rule.host


def _resource_of(words: Words) -> str:
    return _text_of((AclResourceType[words.resource_type], words.name, PatternType[words.pattern_type]))


def _operation_of(words: Words) -> str:
    return _operation_text(AclOperation[words.operation])


class Words(NamedTuple):
    """A rule as Kafka's lines and JSON have it."""

    resource_type: str
    name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str


def words_of(rule: AclBinding) -> Words:
    return Words(
        member(AclResourceType, rule.resource_type, "resource_type").name,
        rule.resource_name,
        member(PatternType, rule.pattern_type, "pattern_type").name,
        rule.principal,
        rule.host,
        member(AclOperation, rule.operation, "operation").name,
        member(AclPermission, rule.permission, "permission").name,
    )


def sentence(rule: AclBinding) -> str:
    """A rule for people: `User:alice may Read topic:orders`."""
    words = words_of(rule)
    may = "may" if words.permission_type == AclPermission.ALLOW.name else "may not"
    host = "" if rule.host == "*" else f" from {rule.host}"
    return f"{rule.principal} {may} {_operation_of(words)} {_resource_of(words)}{host}"


def as_json_object(rule: AclBinding) -> dict[str, str]:
    words = words_of(rule)
    return {
        "resourceType": words.resource_type,
        "name": words.name,
        "patternType": words.pattern_type,
        "principal": words.principal,
        "host": words.host,
        "operation": words.operation,
        "permissionType": words.permission_type,
    }


def print_lines(heading: str, rules: Iterable[AclBinding]) -> None:
    """Kafka's own lines."""
    by_resource: dict[str, list[str]] = {}
    for rule in rules:
        text = as_json_object(rule)
        pattern = (
            f"ResourcePattern(resourceType={text['resourceType']}, name={text['name']}, patternType={text['patternType']})"
        )
        access = ", ".join(f"{name}={text[name]}" for name in ("principal", "host", "operation", "permissionType"))
        by_resource.setdefault(pattern, []).append(f"({access})")
    for pattern, accesses in by_resource.items():
        say(f"{heading} `{pattern}`:")
        for access in accesses:
            say("", access)
        say("")


ACTIONS = {
    "add": ("ottla.cli.acls", "add", "Allow or deny a principal to do something."),
    "remove": ("ottla.cli.acls", "remove", "Remove rules."),
    "list": ("ottla.cli.acls", "list_command", "List rules: all, those of a resource, those for a principal."),
    "check": ("ottla.cli.acls", "check", "Say whether a principal may do something, and by which rule."),
}

EXAMPLES = """\b
Examples:
  ottla acls add alice read,describe topic:orders
  ottla acls list topic:orders
  ottla acls check alice write topic:orders
  ottla acls remove alice read topic:orders
"""


@click.command("acls", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def acls() -> None:
    """Access control lists: who may do what.

    Takes the flags of Kafka's kafka-acls, too.
    """
