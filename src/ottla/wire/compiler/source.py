"""Builds the source of one Python function: lines, indentation, unique names and the constants it uses."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """Lines of one function. `constants` become the globals of the compiled function."""

    def __init__(self, constants: dict[str, Any]) -> None:
        self.constants = constants
        self._lines: list[str] = []
        self._indent = 1
        self._names = 0

    def line(self, text: str) -> None:
        self._lines.append("\t" * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines below `head`, one step deeper."""
        self.line(head)
        self._indent += 1
        yield
        self._indent -= 1

    def name(self, prefix: str) -> str:
        """A name that is unique in the function."""
        self._names += 1
        return f"{prefix}{self._names}"

    def constant(self, name: str, value: Any) -> str:
        """Make `value` available to the function as the global `name`."""
        self.constants[name] = value
        return name

    def struct_call(self, kind: str, letters: list[str]) -> tuple[str, int]:
        """The name of a constant `pack` (kind P) or `unpack_from` (kind U) for `letters`, and its size."""
        layout = struct.Struct(">" + "".join(letters))
        name = kind + "".join(letters).replace("?", "o")
        if name not in self.constants:
            self.constants[name] = layout.pack if kind == "P" else layout.unpack_from
        return name, layout.size

    def compile(self, head: str, title: str) -> Any:
        """The compiled function; `head` is its `def` line."""
        namespace = self.constants
        exec(compile(f"{head}\n" + "\n".join(self._lines), f"<{title}>", "exec"), namespace)
        return namespace["codec"]
