r"""Text of flags with escapes, as bytes: `\n`, `\r`, `\t`, `\0`, `\\` and `\x1e`."""

from __future__ import annotations

import os
import re

import click

NEWLINE = b"\n"
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.|$)", re.DOTALL)
_MEANINGS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}


def parse_delimiter(text: str | None) -> bytes:
    """What `--delimiter` stands for; a line feed without it."""
    if text is None:
        return NEWLINE
    found = unescape(text, "--delimiter")
    if not found:
        raise click.UsageError("--delimiter must not be empty: --whole makes one record of a file")
    return found


def unescape(text: str, flag: str) -> bytes:
    """The bytes that `text` stands for."""

    def replace(found: re.Match[bytes]) -> bytes:
        name = found[1]
        if len(name) == 3:
            return bytes([int(name[1:], 16)])
        if name not in _MEANINGS:
            raise click.UsageError(rf"{flag} has an unknown escape in {text!r}: there are \n, \r, \t, \0, \\ and \x1e")
        return _MEANINGS[name]

    return _ESCAPE.sub(replace, os.fsencode(text))
