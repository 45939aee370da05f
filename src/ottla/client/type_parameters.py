"""`K` and `V`: the types of keys and values, by which the clients are generic.

They are Any unless given, so that a type checker takes `Producer("localhost:9092")` without an annotation. Type checkers know
defaults (PEP 696) from typing_extensions, which they bring along; Python itself has them since 3.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
    K_co = TypeVar("K_co", default=Any, covariant=True)
    V_co = TypeVar("V_co", default=Any, covariant=True)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")
    K_co = TypeVar("K_co", covariant=True)
    V_co = TypeVar("V_co", covariant=True)
