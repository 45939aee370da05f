"""Only the compiled kernels are declared here; everything else is in pyproject.toml.

Each kernel is a plain Python file that Cython may compile with the `.pxd` beside it. Where there is no C compiler, or a Cython
that cannot compile them, the install goes on and the plain files are what gets imported.

-g0: what a debugger would want to know is a third of the compile time.
-fwrapv: numbers that leave 64 bits wrap around, as the kernels' plain twins make them; C alone would not promise that.
"""

import logging
import os

from setuptools import Extension, setup

KERNELS = [
    "records.kernel",
    "records.kernel_columns",
    "records.kernel_batch",
    "log.kernel_producers",
    "log.kernel",
    "broker.partitions.kernel",
    "broker.handlers.kernel_produce",
    "broker.handlers.kernel_commit",
]


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    modules = [
        Extension(f"ottla.{name}", [f"src/ottla/{name.replace('.', '/')}.py"], extra_compile_args=["-O3", "-g0", "-fwrapv"])
        for name in KERNELS
    ]
    try:
        modules = cythonize(modules, build_dir="build/cython", language_level=3)
    except Exception as problem:
        logging.warning("the kernels are not compiled, the plain files serve instead: %s", problem)
        return []
    for module in modules:
        module.optional = True  # set here, because cythonize does not hand it on
    return list(modules)


# A C compiler takes some ten seconds for a kernel.
setup(ext_modules=extensions(), options={"build_ext": {"parallel": os.cpu_count() or 1}})
