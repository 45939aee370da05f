"""What a pipeline ships to workers, and its own modules: those that lie in its folder can be imported by its files.

Their functions are pickled by value while the pipeline runs: they work where nothing is shipped, under Spark Connect.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from ottla.spark.pipelines.spec import Spec
from ottla.spark.shipping.packages import Wishes, formats_named


def wishes_of(spec: Spec) -> Wishes:
    """The packages of the table formats that the pipeline's files name, those that `ottla.yml` lists, and its modules."""
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in spec.files()]
    texts += [each.format for each in (*spec.sources, *spec.sinks)]
    return Wishes(tuple(formats_named(texts)), spec.packages, spec.folder)


@contextmanager
def own_modules(folder: Path) -> Iterator[None]:
    """While this lasts, modules in the folder can be imported. They are forgotten afterwards: another pipeline has others."""
    from pyspark import cloudpickle

    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for module in modules_from(folder):
            if module.__name__ in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.unregister_pickle_by_value(module)
            del sys.modules[module.__name__]


def pickle_by_value(folder: Path) -> None:
    """Let the functions of the modules that were imported from the folder travel without them, until `own_modules` ends."""
    from pyspark import cloudpickle

    for module in modules_from(folder):
        cloudpickle.register_pickle_by_value(module)


def modules_from(folder: Path) -> list[ModuleType]:
    """The modules that were imported from the folder."""
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    return [sys.modules[name] for name, file in files.items() if file is not None and Path(file).is_relative_to(folder)]
