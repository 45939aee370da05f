"""The `ottla` command: the list of verbs, and how errors are shown.

One file (or folder) per verb, imported only when that verb runs, so that `ottla --help` stays fast. Mistakes of the user and
damage in their files end in one readable sentence and a non-zero exit code; a traceback means a bug in Ottla.
"""

import importlib
import os
import re
import sys
from collections.abc import Sequence

import click

from ottla import __version__
from ottla.cli.common.explanations import explain
from ottla.cli.common.output import say, warn
from ottla.cli.common.spelling import Commands, repeat_flags
from ottla.errors import OttlaError
from ottla.errors.texts import near_words

# verb → (module, attribute, one-line help shown without importing the module)
VERBS: dict[str, tuple[str, str, str]] = {
    "up": ("ottla.cli.node.up", "up", "Run one Kafka node, or a cluster of several, with sane defaults."),
    "service": ("ottla.cli.service.command", "service", "Run a node as a service of systemd or launchd."),
    "server": ("ottla.cli.node.server", "server", "Run a node from a server.properties."),
    "check": ("ottla.cli.check.command", "check", "Check whether this machine is fit for a node; measure and plan."),
    "cluster": ("ottla.cli.cluster", "cluster", "Show the cluster and what is wrong with it."),
    "quorum": ("ottla.cli.quorum", "quorum", "Show the metadata quorum, add and remove controllers."),
    "features": ("ottla.cli.features", "features", "Show and change feature levels, such as metadata.version."),
    "brokers": ("ottla.cli.brokers", "brokers", "List and describe brokers."),
    "elect-leaders": ("ottla.cli.elect_leaders", "elect_leaders", "Elect leaders of partitions: preferred or unclean."),
    "reassign": ("ottla.cli.reassign.command", "reassign", "Move partitions to other brokers or log directories."),
    "topics": ("ottla.cli.topics.command", "topics", "Create, list, describe, alter and delete topics."),
    "configs": ("ottla.cli.configs", "configs", "Show and change settings of topics, brokers and groups."),
    "produce": ("ottla.cli.produce.command", "produce", "Send lines as records to a topic."),
    "consume": ("ottla.cli.consume.command", "consume", "Show the records of a topic as they arrive."),
    "perf": ("ottla.cli.perf.command", "perf", "Measure throughput and latency of a cluster."),
    "verifiable-producer": (
        "ottla.cli.verifiable",
        "verifiable_producer",
        "Send counted records, with a JSON event for each: for system tests.",
    ),
    "verifiable-consumer": (
        "ottla.cli.verifiable",
        "verifiable_consumer",
        "Read as a member of a group, with a JSON event for each step.",
    ),
    "groups": ("ottla.cli.groups.command", "groups", "List, describe and delete consumer groups, and reset their offsets."),
    "client-metrics": (
        "ottla.cli.client_metrics",
        "client_metrics",
        "Ask clients to push their metrics to brokers, and look at what they pushed.",
    ),
    "top": ("ottla.cli.top", "top", "Show nodes, topics and groups live."),
    "alerts": ("ottla.cli.alerts", "alerts", "Watch a cluster by rules, and tell a webhook such as Alertmanager."),
    "acls": ("ottla.cli.acls", "acls", "Access control lists: add, remove and list rules, and check what they allow."),
    "users": ("ottla.cli.users", "users", "Add, remove and list SCRAM users."),
    "tokens": ("ottla.cli.tokens", "tokens", "Create, renew, expire and list delegation tokens."),
    "quotas": ("ottla.cli.quotas", "quotas", "Set, remove and list limits for users, clients and addresses."),
    "transactions": ("ottla.cli.transactions", "transactions", "List, describe and abort transactions."),
    "pipeline": (
        "ottla.cli.pipeline.command",
        "pipeline",
        "Data pipelines on Spark: topics in, transform, topics and tables out.",
    ),
    "get-offsets": ("ottla.cli.get_offsets", "get_offsets", "Show the first, last and other offsets of partitions."),
    "log-dirs": ("ottla.cli.log_dirs", "log_dirs", "Show the log directories of brokers, and the size of each partition."),
    "delete-records": ("ottla.cli.delete_records", "delete_records", "Delete the records of partitions below an offset."),
    "console": ("ottla.cli.console", "console", "Look into clusters with a browser."),
    "schemas": ("ottla.cli.schemas", "schemas", "List, show, register, check and delete schemas of a schema registry."),
    "registry": ("ottla.cli.registry", "registry", "Run a schema registry with Confluent's REST API."),
    "sql": ("ottla.cli.sql.command", "sql", "Query topics with SQL, on Spark: a result, a live result, or a shell."),
    "certs": ("ottla.cli.certs", "certs", "Make certificates for TLS: an authority, nodes, clients."),
    "storage": ("ottla.cli.storage", "storage", "Format the log directories of a node, and show their state."),
    "dump-log": ("ottla.cli.dump_log.command", "dump_log", "Show what is in log segments, indexes, snapshots and checkpoints."),
}

# Kafka's names of the same tools; hidden from --help.
ALIASES = {
    "console-producer": "produce",
    "console-consumer": "consume",
    "consumer-groups": "groups",
    "metadata-quorum": "quorum",
    "leader-election": "elect-leaders",
    "reassign-partitions": "reassign",
    "delegation-tokens": "tokens",
}
TOOLS = {
    "broker-api-versions": ("ottla.cli.brokers", "api_versions"),
    "producer-perf-test": ("ottla.cli.perf.produce", "produce"),
    "consumer-perf-test": ("ottla.cli.perf.consume", "consume"),
    "e2e-latency": ("ottla.cli.perf.latency", "latency"),
}
"""Kafka's names of tools that are actions of a verb here; hidden from --help too."""


VERSION = (["--version"], ["--version", "--all"], ["--all", "--version"])


class LazyVerbs(Commands):
    """A click group whose verbs are imported when they are run."""

    aliases = ALIASES | dict.fromkeys(TOOLS, "")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Kafka's tools all have --version, so `ottla VERB --version` works too.
        of_verb = args[1:] in VERSION and not args[0].startswith("-")
        return super().parse_args(ctx, args[1:] if of_verb else repeat_flags(args))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from ottla.cli.kafka_scripts import spelling

            if sentence := spelling(args):
                raise click.UsageError(sentence, ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = ALIASES.get(cmd_name, cmd_name)
        if verb not in VERBS and verb not in TOOLS:
            return None
        module, attribute = TOOLS[verb] if verb in TOOLS else VERBS[verb][:2]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of our output (head, less) has closed the pipe: not a failure. Buffered output is dropped.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, VERBS[verb][2]) for verb in sorted(VERBS)])


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from ottla.records.kernels import PURE_ASKED, variant

        say(f"ottla {__version__} (speaks Apache Kafka 4.3.0; {variant()} kernels)")
        if ctx.meta.get(_ALL):
            from ottla.cli.versions import all_versions

            for line in all_versions():
                say(line)
        elif variant() != "compiled" and not PURE_ASKED:
            from ottla.cli.versions import pure_note

            say(pure_note())
        ctx.exit()
    elif ctx.meta.get(_ALL) and not ctx.resilient_parsing:
        raise click.UsageError("--all goes with --version: ottla --version --all", ctx)


_ALL = "ottla.version.all"


def _note_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[_ALL] = value


@click.command(cls=LazyVerbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, callback=_print_version, help="Show the version and exit.")
@click.option(
    "--all",
    is_flag=True,
    expose_value=False,
    is_eager=True,  # before --version, whatever their order
    callback=_note_all,
    help="With --version: also of Python and the packages in use, and which kernels are compiled.",
)
def ottla() -> None:
    """Kafka in Python: tools for Apache Kafka 4.3's protocol and files.

    Exit codes: 0 done, 1 failed wholly or in part, 2 wrong usage, 130 interrupted.

    Shell completion: eval "$(_OTTLA_COMPLETE=bash_source ottla)" (or zsh_source, fish_source).
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0, 1 (failed, or found damage), 2 (wrong usage) or 130 (interrupted)."""
    try:
        code = ottla.main(args=arguments, prog_name="ottla", standalone_mode=False)
    except click.ClickException as mistake:
        _show(mistake)
        sys.exit(mistake.exit_code)
    except (OttlaError, OSError) as error:
        from ottla.config.values import InvalidConfig  # late: only errors need it

        warn(explain(error), lines=isinstance(error, InvalidConfig))
        sys.exit(1)
    except (click.Abort, KeyboardInterrupt) as error:
        # click turns a KeyboardInterrupt into an Abort without its text.
        warn(str(error.__cause__ or error) or "interrupted")
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


def _show(mistake: click.ClickException) -> None:
    """Print a usage error: how the verb is called, then the error with the prefix of all errors."""
    text = mistake.format_message()
    if isinstance(mistake, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # since click 8.2
        click.echo(text, err=True)  # noqa: TID251  # a verb without arguments: the text is its help
        return
    if isinstance(mistake, click.UsageError) and mistake.ctx is not None:
        say(mistake.ctx.get_usage(), err=True)
        say(f"Try '{mistake.ctx.command_path} --help' for help.", err=True)
        say("", err=True)
    if isinstance(mistake, click.NoSuchOption):
        near = " or ".join(_likely(mistake))
        text = f"there is no option {mistake.option_name}{f': did you mean {near}?' if near else ''}"
    elif extra := _EXTRA.match(text):
        text = _unexpected(mistake, extra[1])
    from ottla.config.values import InvalidConfig  # late: only errors need it

    warn(text, lines=isinstance(mistake.__cause__, InvalidConfig))  # all that is wrong with a server.properties: several lines


_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)$", re.DOTALL)
"""click's words for arguments that a command has no place for."""


def _unexpected(mistake: click.ClickException, words: str) -> str:
    """What to say of arguments too many; a setting among them has a flag, if the command has one for settings."""
    command = mistake.ctx.command if isinstance(mistake, click.UsageError) and mistake.ctx is not None else None
    flags = {name for each in command.params for name in each.opts} if command is not None else set()
    flag = next((each for each in ("--set", "--config") if each in flags), None)
    if flag is not None and "=" in words:
        return f"{words} is one argument too many: write {' '.join(f'{flag} {word}' for word in words.split())}"
    return f"{words} is too much: the usage above shows which arguments the command takes"


def _likely(mistake: click.NoSuchOption) -> list[str]:
    """The options that an unknown one may stand for: similar ones, without those that are only there to be refused."""
    if mistake.ctx is None:
        return []
    options = [each for each in mistake.ctx.command.get_params(mistake.ctx) if isinstance(each, click.Option)]
    names = [name for each in options if not each.hidden for name in each.opts if name.startswith("--")]
    begun = sorted(name for name in names if name.startswith(mistake.option_name))
    return begun[:2] or sorted(near_words(mistake.option_name, names, count=2, cutoff=0.7))


if __name__ == "__main__":
    main()
