"""Every command that a document shows exists and takes what it is given: in blocks of code, and within sentences.

Commands are parsed, not run; other tests run the pages that tell a story. A command within a sentence may be cut short.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ottla.cli.common.spelling import repeat_flags
from ottla.cli.main import ottla

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4}(.*)$", re.MULTILINE)
WITHIN = re.compile(r"`(?:\$ )?(ottla [^`]+)`")
OPERATORS = set("|&;<>()")
STANDS_FOR = re.compile(r"…|\.\.\.|\b[A-Z]{2,}\b")
"""A word for something that the reader knows."""


def commands(text: str) -> Iterator[list[str]]:
    """The words of each `ottla …` in a line of a shell, without what it is connected with."""
    lexer = shlex.shlex(re.sub(r"\$\([^)]*\)", "value", text), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= OPERATORS:
            if words[:1] == ["ottla"]:
                yield words[1:]
            words = []
        elif words or word == "ottla" or word.endswith("/ottla"):
            words.append("ottla" if word.endswith("/ottla") else word)


def shown(page: Path) -> Iterator[tuple[str, bool]]:
    """The lines with commands, and whether each is complete."""
    text = page.read_text("utf-8")
    blocks = [code for kind, code in FENCE.findall(text) if kind in ("sh", "console")]
    blocks.append("\n".join(INDENTED.findall(FENCE.sub("", text))))
    for block in blocks:
        for line in block.replace("\\\n", " ").splitlines():
            line = line.removeprefix("$ ")
            if re.match(r"(?:[\w./-]*/)?ottla |.*\| ottla ", line):
                yield line, True
    for line in WITHIN.findall(FENCE.sub("", text)):
        yield re.sub(r"\s+", " ", line).replace("\\|", "|"), False


def parse(words: list[str]) -> None:
    """Raise a ClickException as the command would before it does anything."""
    command: click.Command = ottla
    context, name, words = None, "ottla", repeat_flags(words)
    while True:
        context = command.make_context(name, list(words), parent=context)
        rest = [*getattr(context, "_protected_args", []), *context.args]
        if not isinstance(command, click.Group) or not rest:
            return
        found, inner, words = command.resolve_command(context, rest)
        assert inner is not None
        name, command = found or name, inner


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_parse(page: Path) -> None:
    wrong = []
    for line, is_complete in shown(page):
        try:
            for words in commands(line):
                if not any(STANDS_FOR.search(word) for word in words):
                    parse(words)
        except (click.exceptions.Exit, click.exceptions.NoArgsIsHelpError):
            continue
        except click.ClickException as mistake:
            text = mistake.format_message()
            is_cut_short = isinstance(mistake, click.MissingParameter) or "requires an argument" in text
            is_explained = line.startswith("ottla kafka-")  # a script of Kafka's: the answer says which command it is
            if not ("does not exist" in text or is_explained or (is_cut_short and not is_complete)):
                wrong.append(f"{line}: {text}")
    assert wrong == []
