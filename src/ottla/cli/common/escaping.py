"""Escapes text from clients, brokers and files, so that it is safe to print on a terminal.

Clients choose the ids of groups, members, clients and transactions freely. ESC and U+009B begin terminal commands, a newline
forges a line, bidi controls reorder text on the screen, and a lone surrogate cannot be encoded at all.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff]"  # lone surrogates: Python joins pairs
)


def escape(text: str) -> str:
    r"""`text` on one line, with control characters as Python escapes them: `\n`, `\x1b`, `\u202e`. Backslashes stay."""
    if text.isprintable():
        return text
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def escape_bytes(data: bytes) -> str:
    r"""Bytes as text on one line; bytes that are not valid UTF-8 become `\xff`."""
    return escape(data.decode("utf-8", "backslashreplace"))


def escape_json(text: str) -> str:
    r"""JSON with control characters as `\u009b`. It decodes to the same value: they occur only within strings."""
    if text.isprintable():
        return text
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
