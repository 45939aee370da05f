"""The `tokens` verb: delegation tokens. A token logs in with SCRAM: its id is the user, its HMAC the password."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_tabbed, print_table, say
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.spelling import Actions
from ottla.cli.common.times import show_time
from ottla.client.admin.tokens import (
    DelegationToken,
    create_delegation_token,
    describe_delegation_tokens,
    expire_delegation_token,
    renew_delegation_token,
)
from ottla.client.cluster import Cluster
from ottla.config.values import parse_duration_ms
from ottla.errors import OttlaError

F = TypeVar("F", bound=Callable[..., Any])

_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_HEADINGS: Final = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")


def _duration(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """`7d`, `90s`, or Kafka's number of milliseconds; negative: the broker's own."""
    if value is None:
        return None
    duration_ms = parse_duration_ms(value)
    if duration_ms is None:
        try:
            duration_ms = int(value)
        except ValueError:
            known = "a duration such as 7d or 90s, or milliseconds"
            raise click.UsageError(f"{param.opts[0]} takes {known}, not {value!r}") from None
    return max(-1, duration_ms)


def _duration_option(*names: str, help: str) -> Callable[[F], F]:
    return click.option(*names, callback=_duration, metavar="TIME", help=help)


def _principal(text: str) -> str:
    return text if ":" in text else f"User:{text}"


CREATE_EXAMPLES = """\b
Examples:
  ottla tokens create --max-lifetime 1d --renewer alice
  ottla tokens create --max-life-time-period -1 --renewer-principal User:alice      Kafka's spelling
"""


@click.command("create", epilog=CREATE_EXAMPLES)
@_duration_option("--max-lifetime", "--max-life-time-period", "lifetime_ms", help="For how long it can be renewed.")
@click.option("--renewer", "--renewer-principal", "renewers", multiple=True, metavar="P", help="Who may renew it. Repeatable.")
@click.option("--owner", "--owner-principal", metavar="P", help="Whose token it is.  [default: who asks]")
@json_option
@plain_option
@cluster_options()
def create(
    settings: ClientSettings,
    lifetime_ms: int | None,
    renewers: tuple[str, ...],
    owner: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Create a token, and show it: the HMAC is a password."""
    token = with_cluster(
        settings,
        lambda cluster: create_delegation_token(
            cluster,
            owner=None if owner is None else _principal(owner),
            renewers=[_principal(each) for each in renewers],
            max_lifetime_ms=-1 if lifetime_ms is None else lifetime_ms,
        ),
    )
    if as_json:
        print_json(_as_json(token, True))
    elif is_for_people(as_json, plain):
        until, at_most = show_time(token.expires), show_time(token.max_lifetime_ends)
        say(f"Token {token.id} of {token.owner}, valid until {until}, with renewals until {at_most}.")
        say("Keep it secret. A client that uses it has sasl.mechanism=SCRAM-SHA-256 (or SCRAM-SHA-512) and")
        say(
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{token.id}" password="{_text_of(token.hmac)}" tokenauth="true";'
        )
    else:
        print_tabbed(_HEADINGS, [_row(token)])


async def _hmac_of(cluster: Cluster, text: str) -> bytes:
    """The HMAC of a token that is named by its id or its HMAC."""
    if _ID.fullmatch(text):
        for each in await describe_delegation_tokens(cluster):
            if each.id == text:
                return each.hmac
        raise OttlaError(f"there is no token {text}, or it is not yours: `ottla tokens list` shows those that you may see")
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise click.UsageError(f"{text[:8]}… is neither the id of a token (22 characters) nor an HMAC in base64") from None


def _token_argument(function: F) -> F:
    function = click.option("--hmac", metavar="BASE64", help="Kafka's spelling; others can see command lines.")(function)
    return click.argument("token", required=False, metavar="[ID]")(function)


def _named(token: str | None, hmac: str | None) -> str:
    if (token is None) == (hmac is None):
        raise click.UsageError("name one token by its id: `ottla tokens list` shows them (Kafka: --hmac)")
    return token or hmac or ""


@click.command("renew")
@_token_argument
@_duration_option("--period", "--renew-time-period", "period_ms", help="For how long.  [default: the broker's setting]")
@json_option
@cluster_options()
def renew(settings: ClientSettings, token: str | None, hmac: str | None, period_ms: int | None, as_json: bool) -> None:
    """Let a token expire later."""
    named = _named(token, hmac)

    async def make(cluster: Cluster) -> int:
        return await renew_delegation_token(
            cluster, await _hmac_of(cluster, named), renew_period_ms=-1 if period_ms is None else period_ms
        )

    _tell(with_cluster(settings, make), as_json)


@click.command("expire")
@_token_argument
@_duration_option("--in", "--expiry-time-period", "period_ms", help="After this time.  [default: now]")
@json_option
@cluster_options()
def expire(settings: ClientSettings, token: str | None, hmac: str | None, period_ms: int | None, as_json: bool) -> None:
    """End a token, now or after some time."""
    named = _named(token, hmac)

    async def make(cluster: Cluster) -> int:
        return await expire_delegation_token(
            cluster, await _hmac_of(cluster, named), expiry_period_ms=-1 if period_ms is None else period_ms
        )

    _tell(with_cluster(settings, make), as_json)


def _tell(expires_ms: int, as_json: bool) -> None:
    if as_json:
        print_json({"expires": expires_ms})
    else:
        say(f"The token expires at {show_time(expires_ms)}.")


@click.command("list")
@click.option("--owner", "--owner-principal", "owners", multiple=True, metavar="P", help="Only this principal's. Repeatable.")
@click.option("--show-hmac", is_flag=True, help="Show the HMACs: they are passwords.")
@json_option
@plain_option
@wide_option
@cluster_options()
def list_command(settings: ClientSettings, owners: tuple[str, ...], show_hmac: bool, as_json: bool, plain: bool) -> None:
    """List the tokens that you own, may renew or may describe."""
    wanted = [_principal(each) for each in owners] or None
    tokens = with_cluster(settings, lambda cluster: describe_delegation_tokens(cluster, wanted))
    show(sorted(tokens, key=lambda each: (each.owner, each.issued, each.id)), show_hmac, as_json, plain)


def show(tokens: Sequence[DelegationToken], show_hmac: bool, as_json: bool, plain: bool) -> None:
    """Print tokens; Kafka's lines have the HMACs."""
    if as_json:
        print_json([_as_json(each, show_hmac) for each in tokens])
    elif not is_for_people(as_json, plain):
        print_tabbed(_HEADINGS, [_row(each) for each in tokens])
    elif tokens:
        headings = ["Id", "Owner", "=Renewers", "Issued", "Expires", "~At most until", *(["HMAC"] if show_hmac else [])]
        rows = [
            (
                each.id,
                each.owner,
                ", ".join(each.renewers),
                *map(show_time, (each.issued, each.expires, each.max_lifetime_ends)),
                *([_text_of(each.hmac)] if show_hmac else []),
            )
            for each in tokens
        ]
        print_table(None, headings, rows)
    else:
        say("There are no tokens that you may see.")


def _text_of(hmac: bytes) -> str:
    return b64encode(hmac).decode()


def _row(token: DelegationToken) -> tuple[str, ...]:
    times = map(show_time, (token.issued, token.expires, token.max_lifetime_ends))
    return token.id, _text_of(token.hmac), token.owner, token.requester, ",".join(token.renewers), *times


def _as_json(token: DelegationToken, show_hmac: bool) -> dict[str, object]:
    return {
        "id": token.id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issued": token.issued,
        "expires": token.expires,
        "maxLifetimeEnds": token.max_lifetime_ends,
        **({"hmac": _text_of(token.hmac)} if show_hmac else {}),
    }


ACTIONS = {
    "create": ("ottla.cli.tokens", "create", "Create a token."),
    "renew": ("ottla.cli.tokens", "renew", "Let a token expire later."),
    "expire": ("ottla.cli.tokens", "expire", "End a token."),
    "list": ("ottla.cli.tokens", "list_command", "List tokens."),
}

EXAMPLES = """\b
Examples:
  ottla tokens create --max-lifetime 1d
  ottla tokens list
  ottla tokens expire ID
"""


@click.command("tokens", cls=Actions, actions=ACTIONS, aliases={"--describe": "--list", "describe": "list"}, epilog=EXAMPLES)
def tokens() -> None:
    """Delegation tokens: short-lived passwords for jobs.

    Takes the flags of Kafka's kafka-delegation-tokens, too.
    """
