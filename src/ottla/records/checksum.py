"""CRC-32C, from the `crc32c` package's compiled module.

The package's own `__init__` asks for its version through importlib.metadata, which pulls in the e-mail, zip and socket
libraries: 30 to 70 ms, a third of what a node may take to start. So the compiled module is loaded by itself, and the package
only if that does not work.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from typing import cast

Checksum = Callable[..., int]
"""(bytes, value so far = 0) → the checksum."""


def _load() -> Checksum:
    try:
        package = PathFinder.find_spec("crc32c")
        places = package.submodule_search_locations if package is not None else None
        spec = PathFinder.find_spec("_crc32c", places) if places else None
        if spec is not None and spec.loader is not None:
            module = spec.loader.create_module(spec)
            if module is not None:
                spec.loader.exec_module(module)
                return cast(Checksum, module.crc32c)
    except (ImportError, AttributeError):
        pass  # a release of the package that is laid out otherwise
    return cast(Checksum, import_module("crc32c").crc32c)


crc32c: Checksum = _load()
