"""Where the bytes of a view are, for the functions of `kernel_fields.py`; what is said there of two twins holds here too.

Apart from them, because whoever knows of views, and were it by name, has all that Cython needs for views compiled in.
"""

from __future__ import annotations

from ottla.records.kernel_fields import Buffer, Target


def raw_of(view: Buffer) -> Buffer:
    """What to read the view's bytes from: for the compiled twin a pointer. The view must live as long as it is used."""
    return view


def out_of(view: Target) -> Target:
    """As `raw_of`, to be written to."""
    return view
