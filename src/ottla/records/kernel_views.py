"""Where the bytes of a view are, for the functions of `kernel_fields.py`; like those, written twice, here and in the `.pxd`.

Kept separate: a module that cimports a memoryview type gets 0.6 MB of Cython's view support compiled in.
"""

from __future__ import annotations

from ottla.records.kernel_fields import Buffer, Target


def raw_of(view: Buffer) -> Buffer:
    """What to read the view's bytes from: in the compiled variant a pointer. The view must live as long as it is used."""
    return view


def out_of(view: Target) -> Target:
    """What to write the view's bytes to: in the compiled variant a pointer."""
    return view


def new_buffer(size: int) -> bytearray:
    """A buffer of `size` bytes to be filled: in the compiled variant its content is not defined, because zeroing takes time."""
    return bytearray(size)


def unlock(size: int) -> object:
    """Release the interpreter lock for work on `size` bytes, if they are many (64 KB): other threads run meanwhile.

    Until `lock` is called with the result, the caller may only call functions that the `.pxd` declares as `nogil`: Cython
    checks their bodies, not the lines between. The pure variant releases nothing.
    """
    return None


def lock(unlocked: object) -> None:
    """Take the interpreter lock again."""
