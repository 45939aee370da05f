"""The `users` verb: SCRAM users. Passwords come from a prompt, a file or the environment, never from the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import click

from ottla.cli.common.completion import complete_words
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.options import cluster_options, json_option, plain_option, refused, wide_option, yes_option
from ottla.cli.common.output import can_ask, confirm, is_for_people, print_json, print_table, say, warn
from ottla.cli.common.settings import ClientSettings, parse_pairs
from ottla.cli.common.spelling import Actions
from ottla.client.admin.scram import (
    ScramCredential,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from ottla.client.cluster import Cluster
from ottla.errors import OttlaError

MECHANISMS: Final = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"
PASSWORD_VARIABLE: Final = "OTTLA_NEW_PASSWORD"
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
PASSWORD_BYTES_MAX: Final = 65536

ADD_EXAMPLES = f"""\b
Examples:
  ottla users add alice                                    asks for the password
  ottla users add alice --password-file alice.secret       a final line break is not part of it; - reads standard input
  {PASSWORD_VARIABLE}=… ottla users add alice
  ottla users add alice --mechanism SCRAM-SHA-256 --mechanism SCRAM-SHA-512
"""


@click.command("add", epilog=ADD_EXAMPLES)
@click.argument("name")
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(list(MECHANISMS), case_sensitive=False),
    shell_complete=complete_words(*MECHANISMS),
    help=f"How the user logs in. Repeatable.  [default: {DEFAULT_MECHANISM}]",
)
@click.option("--password-file", metavar="FILE", help="Read the password from a file; - reads standard input.")
@refused(
    "--password",
    f"others can see command lines: you are asked without it, or use --password-file or {PASSWORD_VARIABLE}",
)
@click.option(
    "--iterations",
    type=click.IntRange(ITERATIONS_MIN, ITERATIONS_MAX),
    default=ITERATIONS_MIN,
    show_default=True,
    help="How expensive guessing is.",
)
@json_option
@cluster_options()
def add(
    settings: ClientSettings, name: str, mechanisms: tuple[str, ...], password_file: str | None, iterations: int, as_json: bool
) -> None:
    """Add the user NAME, or change the user's password."""
    chosen = list(dict.fromkeys(mechanisms or (DEFAULT_MECHANISM,)))
    password = read_password(name, password_file)
    changes = [ScramUpsertion(name, MECHANISMS[each], password, iterations) for each in chosen]
    change(settings, changes)
    if as_json:
        print_json({"user": name, "mechanisms": chosen, "iterations": iterations})
    else:
        say(f"User {name} can log in with {' and '.join(chosen)}. The principal is User:{name}.")


def read_password(name: str, path: str | None) -> str:
    """The new password of a user: from a file, the environment, or a prompt."""
    if path is not None:
        password = _from_file(path)
    elif (given := os.environ.get(PASSWORD_VARIABLE)) is not None:
        password = given
    elif can_ask():
        password = click.prompt(f"New password of {name}", hide_input=True, confirmation_prompt=True, err=True)
    else:
        raise click.UsageError(f"there is no terminal to ask for the password: use --password-file FILE or {PASSWORD_VARIABLE}")
    if not password:
        raise click.UsageError("the password is empty")
    return password


def _from_file(path: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(PASSWORD_BYTES_MAX + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(PASSWORD_BYTES_MAX + 1)
        text = data.decode()
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{path} holds no text in UTF-8") from None
    if len(data) > PASSWORD_BYTES_MAX:
        raise click.UsageError(f"{path} is too large for a password")
    return text.removesuffix("\n").removesuffix("\r")


def change(settings: ClientSettings, changes: Sequence[ScramUpsertion | ScramDeletion]) -> None:
    """Make the changes one after the other: Kafka takes one change of a user in a request."""

    async def make(cluster: Cluster) -> None:
        for each in changes:
            (await alter_user_scram_credentials(cluster, [each])).raise_first()

    with_cluster(settings, make)


def alter_in_kafkas_spelling(settings: ClientSettings, user: str, added: Mapping[str, str], removed: Sequence[str]) -> None:
    """`SCRAM-SHA-256=[iterations=8192,password=secret]`, as kafka-configs takes it."""
    changes: list[ScramUpsertion | ScramDeletion] = []
    for name, text in added.items():
        fields = parse_pairs(text.split(","), name)
        password, iterations = fields.pop("password", None), fields.pop("iterations", str(ITERATIONS_MIN))
        if fields or password is None or not iterations.isdigit():
            raise click.UsageError(f"{name} takes [password=…] or [iterations=8192,password=…]; better: ottla users add {user}")
        changes.append(ScramUpsertion(user, _mechanism(name), password, int(iterations)))
    change(settings, [*changes, *(ScramDeletion(user, _mechanism(name)) for name in removed)])


def _mechanism(name: str) -> ScramMechanism:
    if name not in MECHANISMS:
        raise click.UsageError(f"{name} is no mechanism: it is {' or '.join(MECHANISMS)}")
    return MECHANISMS[name]


@click.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="NAMES...")
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(list(MECHANISMS), case_sensitive=False),
    help="Only this way to log in.  [default: all]",
)
@yes_option
@json_option
@cluster_options()
def remove(settings: ClientSettings, names: tuple[str, ...], mechanisms: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove users. Open connections of theirs stay. Rules and quotas for them stay too."""
    wanted = [MECHANISMS[each] for each in mechanisms] or list(MECHANISMS.values())

    async def find(cluster: Cluster) -> dict[str, list[ScramCredential]]:
        return dict((await describe_user_scram_credentials(cluster, list(names))).raise_first())

    found = with_cluster(settings, find)
    gone = [(name, each.mechanism) for name, held in found.items() for each in held if each.mechanism in wanted]
    if not gone:
        raise OttlaError(f"{', '.join(names)}: no such credential: nothing was removed")
    confirm(f"Remove {', '.join(names)}?", yes)
    change(settings, [ScramDeletion(name, mechanism) for name, mechanism in gone])
    removed = [{"user": name, "mechanism": _name_of(mechanism)} for name, mechanism in gone]
    if as_json:
        print_json(removed)
    for each in () if as_json else removed:
        say(f"Removed {each['mechanism']} of user {each['user']}.")


@click.command("list")
@click.argument("names", nargs=-1, metavar="[NAMES]...")
@json_option
@plain_option
@wide_option
@cluster_options()
def list_command(settings: ClientSettings, names: tuple[str, ...], as_json: bool, plain: bool) -> int:
    """List the SCRAM users and how they log in."""
    return show(settings, names or None, as_json, plain)


def show(settings: ClientSettings, names: Sequence[str] | None, as_json: bool, plain: bool, is_silent: bool = False) -> int:
    """Print the credentials of users; 1 if one of them has none. With `is_silent`, nothing is said of none."""
    results = with_cluster(settings, lambda cluster: describe_user_scram_credentials(cluster, names))
    found = results.values_found
    for error in () if is_silent else results.errors.values():
        warn(explain(error))
    if as_json:
        print_json([{"user": name, "credentials": [*map(_as_json, held)]} for name, held in found.items()])
    elif not is_for_people(as_json, plain):
        for name, held in found.items():
            texts = ", ".join(f"{_name_of(each.mechanism)}=iterations={each.iterations}" for each in held)
            say(f"SCRAM credential configs for user-principal '{name}' are {texts}")
    elif found:
        rows = [(name, _name_of(each.mechanism), each.iterations) for name, held in found.items() for each in held]
        print_table(None, ("User", "Mechanism", "#Iterations"), rows)
    elif not results.errors and not is_silent:
        say("There are no SCRAM users.")
    return 1 if results.errors else 0


def _as_json(credential: ScramCredential) -> dict[str, object]:
    return {"mechanism": _name_of(credential.mechanism), "iterations": credential.iterations}


def _name_of(mechanism: ScramMechanism) -> str:
    return mechanism.name.replace("_", "-")


ACTIONS = {
    "add": ("ottla.cli.users", "add", "Add a user, or change the password."),
    "remove": ("ottla.cli.users", "remove", "Remove users."),
    "list": ("ottla.cli.users", "list_command", "List the users."),
}

EXAMPLES = """\b
Examples:
  ottla users add alice
  ottla users list
  ottla users remove alice
"""


@click.command("users", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def users() -> None:
    """SCRAM users: who can log in with a password that the cluster keeps.

    Kafka changes them with kafka-configs: `ottla configs alter --entity-type users …` works too.
    """
