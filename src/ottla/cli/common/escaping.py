"""Text from clients, brokers and files, made safe for a terminal: what would steer it, hide or forge text is spelt out.

Ids of groups, members, clients and transactions are whatever a client chose. ESC and U+009B begin commands to a terminal, a
newline forges a line, bidi controls show text in another order than it has, and a lone surrogate cannot be encoded at all.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff]"  # surrogates, which are alone: Python joins pairs
)


def escape(text: str) -> str:
    r"""`text` on one line, with controls as Python spells them: `\n`, `\x1b`, `\u202e`. Backslashes stay as they are."""
    if text.isprintable():
        return text
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def escape_bytes(data: bytes) -> str:
    r"""Bytes as text on one line; those that are no UTF-8 as `\xff`."""
    return escape(data.decode("utf-8", "backslashreplace"))


def escape_json(text: str) -> str:
    r"""JSON with controls as `\u009b`. It decodes to the same value: controls stand only within strings."""
    if text.isprintable():
        return text
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
