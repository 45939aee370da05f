"""Two spellings of one command: `ottla topics create orders` and Kafka's `ottla topics --create --topic orders`.

In Kafka's spelling the action is a flag, anywhere among the others. It is moved to the front and becomes the subcommand of our
spelling; flags before a subcommand are moved behind it. So each action is one click command, with the flags of both spellings.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import click

from ottla.errors.texts import near_words

_VALUE_FLAGS = frozenset({"-b", "--bootstrap-server", "--bootstrap-controller", "--command-config", "--command-property"})
"""Flags with a value that may precede the subcommand."""

_LIST_FLAGS = frozenset(
    {
        "--command-property",
        "--producer-property",
        "--producer-props",
        "--consumer-property",
        "--admin-property",
        "--formatter-property",
        "--reader-property",
        "--property",
    }
)
_SETTING = re.compile(r"(acks|retries|[a-z0-9]+(\.[a-z0-9_]+)+)=")
"""What a setting looks like: its name has a dot, but for two."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """`did you mean create?` if a choice is similar to `word`, else an empty string."""
    near = near_words(word, choices, count=2, cutoff=0.7)
    return f"did you mean {' or '.join(sorted(near))}?" if near else ""


def repeat_flags(args: Sequence[str]) -> list[str]:
    """`args` with a property flag before each of its values: Kafka's tools take `--command-property linger.ms=10 acks=1`.

    Every `KEY=VALUE` behind the first counts that looks like a setting. Others, such as names of files, stay arguments.
    """
    found: list[str] = []
    flag = None
    is_first = False
    for arg in args:
        if arg.startswith("-"):
            flag, is_first = (arg, True) if arg in _LIST_FLAGS else (None, False)
        elif flag is not None and not is_first and _SETTING.match(arg):
            found.append(flag)
        else:
            flag = flag if is_first else None
            is_first = False
        found.append(arg)
    return found


class Commands(click.Group):
    """A click group that suggests the right word for a mistyped one."""

    kind = "commands"
    aliases: Mapping[str, str] = MappingProxyType({})
    """Other names of its commands, hidden from help."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if not word.startswith("-") and self.get_command(ctx, word) is None:
            names = self.list_commands(ctx)
            hint = did_you_mean(word, [*names, *self.aliases])
            what = hint or f"choose one of {', '.join(names)}"
            raise click.UsageError(f"{word} is not one of the {self.kind} of {ctx.command_path}: {what}", ctx)
        return super().resolve_command(ctx, args)


Action: TypeAlias = tuple[click.Command, str] | tuple[str, str, str]
"""A command with its one line of help; or the module and the name of one that is imported when it is used."""


class Actions(Commands):
    """A verb with actions.

    `aliases`: Kafka's names of actions, where they differ from ours; hidden from help.
    """

    kind = "actions"

    def __init__(
        self,
        *args: object,
        actions: Mapping[str, Action],
        aliases: dict[str, str] | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed through to click
        self.actions = actions
        self.aliases = aliases or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.actions)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        action = self.actions.get(cmd_name)
        if action is None:
            return None
        command = action[0] if len(action) == 2 else getattr(importlib.import_module(action[0]), action[1])
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Actions"):
            formatter.write_dl([(name, self.actions[name][-1]) for name in self.actions])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, self.in_our_spelling(args))
        except click.NoSuchOption as unknown:
            if hint := did_you_mean(unknown.option_name, [f"--{action}" for action in self.actions]):
                raise click.UsageError(
                    f"{unknown.option_name} is not one of the actions of {ctx.command_path}: {hint}", ctx
                ) from None
            # The action is missing: saying so helps more than "no such option" for its flags.
            example = f"{ctx.command_path} {next(iter(self.actions))} …"
            raise click.UsageError(f"say what to do, one of {', '.join(self.actions)}: {example}", ctx) from None

    def in_our_spelling(self, args: Sequence[str]) -> list[str]:
        """`args` with the action in front; unchanged if they contain none."""
        args = [self.aliases.get(arg, arg) for arg in args]
        flags = [arg for arg in args if arg.startswith("--") and arg[2:] in self.actions]
        if args and args[0] in self.actions:
            return list(args)
        if len(set(flags)) > 1:
            raise click.UsageError(f"{' and '.join(sorted(set(flags)))} cannot be used together: choose one of them")
        if flags:
            return [flags[0][2:], *(arg for arg in args if arg != flags[0])]
        moved = 0
        while moved < len(args) and args[moved].partition("=")[0] in _VALUE_FLAGS:
            moved += 1 if "=" in args[moved] else 2
        if moved and moved < len(args) and args[moved] in self.actions:
            return [args[moved], *args[moved + 1 :], *args[:moved]]
        return list(args)
