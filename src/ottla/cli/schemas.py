"""The `schemas` verb: what a schema registry holds, changes of it, a check for CI, and copies that keep ids."""

from __future__ import annotations

import difflib
import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

from ottla.cli.common.options import json_option, wide_option, yes_option
from ottla.cli.common.output import confirm, is_for_people, print_data, print_json, print_table, say, warn
from ottla.cli.common.spelling import Actions
from ottla.errors import OttlaError
from ottla.schemas.client import Reference, RegistryRefusedError, Schema, SchemaRegistry

F = TypeVar("F", bound=Callable[..., Any])

URL = "http://localhost:8081"
URL_VARIABLE = "OTTLA_SCHEMA_REGISTRY"
LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
MODES = ("READWRITE", "READONLY", "IMPORT")
KINDS = {".avsc": "AVRO", ".avro": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}


EXAMPLES = {
    "show": (
        "show orders-value",
        "show orders-value 3 --json",
        "show id 7",
    ),
    "register": (
        "register orders-value order.avsc",
        "register orders-value order.proto --reference common.proto=common:latest",
    ),
    "check": (
        "check orders-value order.avsc",
        "check orders-value order.avsc --against 3 --json",
    ),
    "delete": (
        "delete orders-value 3",
        "delete orders-value --permanent --yes",
    ),
    "export": (
        "export schemas.jsonl",
        "export --prefix orders | gzip > schemas.jsonl.gz",
    ),
    "import": (
        "import schemas.jsonl -r http://new:8081",
        "export -r http://old:8081 | ottla schemas import -r http://new:8081 --yes",
    ),
    "mode": (
        "mode orders-value --set READONLY",
        "mode orders-value --reset",
    ),
    "list": (
        "list",
        "list orders --deleted --json",
    ),
    "diff": (
        "diff orders-value 1",
        "diff orders-value 1 2",
    ),
    "level": (
        "level",
        "level orders-value --set FULL_TRANSITIVE",
    ),
}


def examples(action: str) -> str:
    """The end of an action's help page."""
    return "\b\nExamples:\n" + "".join(f"  ottla schemas {each}\n" for each in EXAMPLES[action])


def registry_options(function: F) -> F:
    """Add the flags for the registry's address; the function gets `registry` instead of them."""

    @functools.wraps(function)
    def wrapper(*args: Any, registry_url: str, user: str | None, ca: str | None, **rest: Any) -> Any:
        login = None
        if user is not None:
            name, _, password = user.partition(":")
            login = (name, password or click.prompt(f"Password of {name}", hide_input=True, err=True))
        return function(*args, registry=SchemaRegistry(registry_url, auth=login, ca=ca), **rest)

    decorated: Any = wrapper
    decorated = click.option("--ca", metavar="FILE", help="A PEM file with the authorities to trust, for https.")(decorated)
    decorated = click.option(
        "--user",
        envvar="OTTLA_SCHEMA_REGISTRY_USER",
        metavar="NAME",
        help="Log in; asks for the password. The variable may hold NAME:PASSWORD.",
    )(decorated)
    return click.option(  # type: ignore[no-any-return]  # click's decorators return the function they decorate
        "-r",
        "--registry",
        "registry_url",
        envvar=URL_VARIABLE,
        default=URL,
        show_default=True,
        metavar="URL",
        help=f"Where to find the schema registry; ${URL_VARIABLE} gives it too.",
    )(decorated)


type_option = click.option(
    "--type",
    "kind",
    type=click.Choice(["avro", "json", "protobuf"], case_sensitive=False),
    help="The type of the schema.  [default: by the file's name: .avsc, .json, .proto]",
)
reference_option = click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="NAME=SUBJECT:VERSION",
    help="A schema that this one imports. Repeatable. The version may be latest.",
)


def read_schema(registry: SchemaRegistry, path: str, kind: str | None, references: tuple[str, ...]) -> Schema:
    """A schema from a file, or from standard input."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{path} holds no text in UTF-8") from None
    found = kind.upper() if kind else KINDS.get(Path(path).suffix.lower())
    if found is None:
        raise click.UsageError(f"{path}: the name does not say what it is: add --type avro, json or protobuf")
    return Schema(text, found, tuple(_reference(registry, each) for each in references))


def _reference(registry: SchemaRegistry, given: str) -> Reference:
    name, equals, place = given.partition("=")
    subject, colon, version = place.rpartition(":")
    if not equals or not colon or not (version.isdigit() or version == "latest"):
        raise click.UsageError(f"--reference {given}: write NAME=SUBJECT:VERSION, such as common.proto=common:1")
    number = registry.latest(subject).version if version == "latest" else int(version)
    return Reference(name, subject, number)


@click.command("list", epilog=examples("list"))
@click.argument("prefix", default="")
@click.option("--deleted", is_flag=True, help="Also subjects that were deleted softly.")
@json_option
@wide_option
@registry_options
def list_command(registry: SchemaRegistry, prefix: str, deleted: bool, as_json: bool) -> None:
    """List the subjects, all or those that begin with PREFIX."""
    subjects = registry.subjects(prefix, deleted=deleted)
    if as_json or not is_for_people(as_json):
        rows = [{"subject": each, "versions": registry.versions(each, deleted=deleted)} for each in subjects] if as_json else []
        print_json(rows) if as_json else print_data(subjects)
        return
    if not subjects:
        say("There are no schemas yet. Register one: ottla schemas register SUBJECT FILE")
        return
    table = []
    for each in subjects:
        newest = registry.latest(each) if not deleted else None
        versions = registry.versions(each, deleted=deleted)
        table.append((each, newest.schema.kind if newest else "", len(versions), versions[-1], newest.id if newest else ""))
    print_table(None, ("Subject", "Type", "#Versions", "#Newest", "#Id"), table)


@click.command("show", epilog=examples("show"))
@click.argument("subject")
@click.argument("version", default="latest")
@click.option("--all", "shows_all", is_flag=True, help="All versions, without their texts.")
@json_option
@registry_options
def show(registry: SchemaRegistry, subject: str, version: str, shows_all: bool, as_json: bool) -> None:
    """Print the newest version of a SUBJECT, another VERSION, or the schema with an id: `ottla schemas show id 7`."""
    if subject == "id" and version.isdigit():
        schema = registry.schema(int(version))
        print_json({"id": int(version), **schema.as_body()}) if as_json else print_data(pretty(schema).splitlines())
        return
    if shows_all:
        found = [registry.version(subject, each) for each in registry.versions(subject)]
        rows = [{"version": each.version, "id": each.id, "type": each.schema.kind} for each in found]
        print_json(rows) if as_json else print_table(None, ("#Version", "#Id", "Type"), [tuple(each.values()) for each in rows])
        return
    if version != "latest" and not version.isdigit():
        raise click.UsageError(f"{version}: a version is a number, or latest")
    one = registry.latest(subject) if version == "latest" else registry.version(subject, int(version))
    if as_json:
        print_json({"subject": one.subject, "version": one.version, "id": one.id, "guid": one.guid, **one.schema.as_body()})
        return
    if is_for_people():
        say(f"{one.subject} version {one.version}, id {one.id}, {one.schema.kind}", err=True)
        for each in one.schema.references:
            say(f"imports {each.name}: {each.subject} version {each.version}", err=True)
    print_data(pretty(one.schema).splitlines())


def pretty(schema: Schema) -> str:
    """A schema as people read it."""
    if schema.kind == "PROTOBUF":
        return schema.text.rstrip()
    try:
        return json.dumps(json.loads(schema.text), indent=2, ensure_ascii=False)
    except ValueError:
        return schema.text


@click.command("register", epilog=examples("register"))
@click.argument("subject")
@click.argument("file")
@type_option
@reference_option
@click.option("--normalize", is_flag=True, help="Store a form in which order and spelling do not matter.")
@json_option
@registry_options
def register(
    registry: SchemaRegistry,
    subject: str,
    file: str,
    kind: str | None,
    references: tuple[str, ...],
    normalize: bool,
    as_json: bool,
) -> None:
    """Store the schema of FILE in SUBJECT, if it is compatible. The same schema again changes nothing."""
    found = registry.register(subject, read_schema(registry, file, kind, references), normalize=normalize)
    if as_json:
        print_json({"subject": subject, "version": found.version, "id": found.id})
    else:
        say(f"{subject}: version {found.version}, id {found.id}")


@click.command("check", epilog=examples("check"))
@click.argument("subject")
@click.argument("file")
@type_option
@reference_option
@click.option(
    "--against", "version", default="", metavar="VERSION", help="Compare with one version.  [default: as a registration would]"
)
@json_option
@registry_options
def check(
    registry: SchemaRegistry,
    subject: str,
    file: str,
    kind: str | None,
    references: tuple[str, ...],
    version: str,
    as_json: bool,
) -> int:
    """Say whether the schema of FILE could be registered in SUBJECT; the exit code is 1 if not. Changes nothing."""
    messages = registry.check(subject, read_schema(registry, file, kind, references), version or None)
    if as_json:
        print_json({"subject": subject, "compatible": not messages, "messages": messages})
    elif not messages:
        say(f"{file} is compatible with {subject}.")
    else:
        say(f"{file} is not compatible with {subject}:")
        for each in messages:
            say(f"  {each}")
    return 1 if messages else 0


@click.command("diff", epilog=examples("diff"))
@click.argument("subject")
@click.argument("before")
@click.argument("after", default="latest")
@registry_options
def diff(registry: SchemaRegistry, subject: str, before: str, after: str) -> None:
    """Show what changed from version BEFORE of SUBJECT to version AFTER, by default the newest."""
    one, two = (_version(registry, subject, each) for each in (before, after))
    lines = difflib.unified_diff(
        pretty(one.schema).splitlines(),
        pretty(two.schema).splitlines(),
        f"version {one.version}",
        f"version {two.version}",
        lineterm="",
    )
    print_data(lines)


def _version(registry: SchemaRegistry, subject: str, given: str) -> Any:
    if given == "latest":
        return registry.latest(subject)
    if not given.isdigit():
        raise click.UsageError(f"{given}: a version is a number, or latest")
    return registry.version(subject, int(given))


@click.command("delete", epilog=examples("delete"))
@click.argument("subject")
@click.argument("version", default="")
@click.option(
    "--permanent", is_flag=True, help="For good: records written with it can no longer be read. Deletes softly first."
)
@yes_option
@json_option
@registry_options
def delete(registry: SchemaRegistry, subject: str, version: str, permanent: bool, yes: bool, as_json: bool) -> None:
    """Delete a SUBJECT, or one VERSION of it: softly, so that records stay readable by id."""
    what = f"version {version} of {subject}" if version else f"subject {subject} with all versions"
    confirm(f"Delete {what}{' for good' if permanent else ''}?", yes)
    path = f"/subjects/{quote(subject, safe='')}{f'/versions/{version}' if version else ''}"
    found = None
    if permanent:
        try:
            registry.call("DELETE", path)
        except OttlaError as refusal:
            if getattr(refusal, "registry_code", 0) not in (40404, 40406):
                raise
        found = registry.call("DELETE", f"{path}?permanent=true")
    else:
        found = registry.call("DELETE", path)
    if as_json:
        print_json({"subject": subject, "deleted": found if isinstance(found, list) else [found]})
    else:
        say(f"Deleted {what}{' for good' if permanent else ': records stay readable by id'}.")


@click.command("export", epilog=examples("export"))
@click.argument("file", default="-")
@click.option("--prefix", default="", help="Only subjects that begin with this.")
@registry_options
def export_command(registry: SchemaRegistry, file: str, prefix: str) -> None:
    """Write all schemas with their ids to FILE, a JSON line each, or to standard output; softly deleted ones too."""
    lines = []
    for subject in registry.subjects(prefix, deleted=True):
        every = registry.versions(subject, deleted=True)
        alive = set(registry.call("GET", f"{_versions(subject)}?deletedAsNegative=true"))
        for number in every:
            one = registry.version(subject, number)
            row = {"subject": subject, "version": number, "id": one.id, **one.schema.as_body()}
            lines.append(json.dumps(row | ({} if number in alive else {"deleted": True}), ensure_ascii=False))
    lines.sort(key=lambda line: (json.loads(line)["id"], json.loads(line)["subject"]))
    if file == "-":
        print_data(lines)
        return
    try:
        Path(file).write_text("".join(f"{each}\n" for each in lines), encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{file} cannot be written: {error.strerror}") from None
    say(f"{len(lines)} schemas are in {file}.")


@click.command("import", epilog=examples("import"))
@click.argument("file", default="-")
@yes_option
@registry_options
def import_command(registry: SchemaRegistry, file: str, yes: bool) -> None:
    """Store the schemas of an export, with their ids. The registry must be empty, or hold the same schemas."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from None
    rows = []
    for number, line in enumerate(filter(None, text.splitlines()), 1):
        try:
            row = json.loads(line)
            rows.append({name: row[name] for name in ("subject", "version", "id", "schema")} | row)
        except (ValueError, KeyError, TypeError):
            raise click.UsageError(f"{file}, line {number}: it is no line of `ottla schemas export`") from None
    confirm(f"Store {len(rows)} schemas with their ids?", yes)
    before = {scope: _own_mode(registry, scope) for scope in sorted({_scope(row["subject"]) for row in rows})}
    for scope, own in before.items():
        if own != "IMPORT":
            registry.call("PUT", f"{_path('mode', scope)}?force=true", {"mode": "IMPORT"})
    try:
        done = _imported(registry, rows)
    finally:
        for scope, own in before.items():
            if own is None:
                registry.call("DELETE", _path("mode", scope))
            elif own != "IMPORT":
                registry.call("PUT", _path("mode", scope), {"mode": own})
    for row in rows:
        if row.get("deleted") and row["version"] in registry.versions(row["subject"]):
            registry.call("DELETE", f"{_versions(row['subject'])}/{row['version']}")
    say(f"{done} schemas were stored.")


def _versions(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}/versions"


def _scope(subject: str) -> str:
    """What a mode is set for: the registry, or the context of a subject."""
    return f":{subject.split(':')[1]}:" if subject.startswith(":.") else ""


def _own_mode(registry: SchemaRegistry, scope: str) -> str | None:
    if not scope:
        found: str = registry.call("GET", "/mode")["mode"]
        return found
    try:
        found = registry.call("GET", _path("mode", scope))["mode"]
        return found
    except RegistryRefusedError as refusal:
        if refusal.registry_code != 40409:
            raise
        return None


def _imported(registry: SchemaRegistry, rows: list[dict[str, Any]]) -> int:
    """Store rows; those that reference others that are not there yet come again."""
    pending, done = rows, 0
    while pending:
        later: list[tuple[dict[str, Any], OttlaError]] = []
        for row in pending:
            body = {name: each for name, each in row.items() if name not in ("subject", "deleted")}
            try:
                registry.call("POST", _versions(row["subject"]), body)
                done += 1
            except OttlaError as refusal:
                if "reference" not in str(refusal):
                    raise OttlaError(f"{row['subject']} version {row['version']}, id {row['id']}: {refusal}") from None
                later.append((row, refusal))
        if len(later) == len(pending):
            row, first = later[0]
            warn(f"{len(later)} schemas were not stored")
            raise OttlaError(f"{row['subject']} version {row['version']}: {first}")
        pending = [row for row, _ in later]
    return done


@click.command("level", epilog=examples("level"))
@click.argument("subject", default="")
@click.option("--set", "wanted", type=click.Choice(LEVELS, case_sensitive=False), help="The level from now on.")
@click.option("--reset", is_flag=True, help="Back to the level of the registry.")
@json_option
@registry_options
def level(registry: SchemaRegistry, subject: str, wanted: str | None, reset: bool, as_json: bool) -> None:
    """Show or set how new versions of SUBJECT must be compatible with older ones; without SUBJECT, of the whole registry."""
    if wanted and reset:
        raise click.UsageError("--set and --reset exclude each other")
    if wanted:
        registry.call("PUT", _path("config", subject), {"compatibility": wanted.upper()})
    elif reset:
        _reset(registry, "config", subject)
    now = registry.call("GET", f"{_path('config', subject)}?defaultToGlobal=true")["compatibilityLevel"]
    if as_json:
        print_json({"subject": subject or None, "level": now})
    else:
        say(f"{subject or 'the registry'}: {now}")


@click.command("mode", epilog=examples("mode"))
@click.argument("subject", default="")
@click.option("--set", "wanted", type=click.Choice(MODES, case_sensitive=False), help="The mode from now on.")
@click.option("--reset", is_flag=True, help="Back to the mode of the registry.")
@click.option("--force", is_flag=True, help="IMPORT also where there are schemas.")
@json_option
@registry_options
def mode(registry: SchemaRegistry, subject: str, wanted: str | None, reset: bool, force: bool, as_json: bool) -> None:
    """Show or set whether SUBJECT takes new schemas (READWRITE), none (READONLY), or such with ids (IMPORT); without SUBJECT,
    the whole registry.
    """
    if wanted and reset:
        raise click.UsageError("--set and --reset exclude each other")
    if wanted:
        registry.call("PUT", f"{_path('mode', subject)}{'?force=true' if force else ''}", {"mode": wanted.upper()})
    elif reset:
        _reset(registry, "mode", subject)
    now = registry.call("GET", f"{_path('mode', subject)}?defaultToGlobal=true")["mode"]
    if as_json:
        print_json({"subject": subject or None, "mode": now})
    else:
        say(f"{subject or 'the registry'}: {now}")


def _path(what: str, subject: str) -> str:
    return f"/{what}/{quote(subject, safe='')}" if subject else f"/{what}"


def _reset(registry: SchemaRegistry, what: str, subject: str) -> None:
    try:
        registry.call("DELETE", _path(what, subject))
    except RegistryRefusedError as refusal:
        if refusal.registry_code not in (40408, 40409):  # it has none of its own
            raise


ACTIONS = {
    "list": ("ottla.cli.schemas", "list_command", "List subjects."),
    "show": ("ottla.cli.schemas", "show", "Print a schema."),
    "register": ("ottla.cli.schemas", "register", "Store a schema."),
    "check": ("ottla.cli.schemas", "check", "Say whether a schema is compatible, for continuous integration."),
    "diff": ("ottla.cli.schemas", "diff", "Show what changed between two versions."),
    "delete": ("ottla.cli.schemas", "delete", "Delete a subject or a version."),
    "level": ("ottla.cli.schemas", "level", "Show or set the compatibility level."),
    "mode": ("ottla.cli.schemas", "mode", "Show or set the mode: READWRITE, READONLY or IMPORT."),
    "export": ("ottla.cli.schemas", "export_command", "Write all schemas to a file, with their ids."),
    "import": ("ottla.cli.schemas", "import_command", "Store the schemas of an export, with their ids."),
}

GROUP_EXAMPLES = f"""\b
Examples:
  ottla schemas register orders-value order.avsc
  ottla schemas check orders-value order.avsc          exit code 1 and the reasons if it is not compatible
  ottla schemas show orders-value
  ottla schemas diff orders-value 1
  ottla schemas level orders-value --set FULL
  ottla schemas export -r http://old:8081 | ottla schemas import -r http://new:8081 --yes
  export {URL_VARIABLE}=http://registry:8081            the registry for all commands
"""


@click.command("schemas", cls=Actions, actions=ACTIONS, epilog=GROUP_EXAMPLES)
def schemas() -> None:
    """Schemas in a schema registry: Ottla's, Confluent's or any other with the same REST API."""
