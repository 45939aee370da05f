"""Only the compiled kernels are declared here; everything else is in pyproject.toml.

Each kernel is a plain Python file that Cython may compile with the `.pxd` beside it. Where there is no C compiler, or a Cython
that cannot compile them, the install goes on and the plain files are what gets imported. All are compiled or none is: they
build on each other, and a compiled one does not take what comes from a plain one.
`records/kernel_fields.pxd` and `kernel_views.pxd` are compiled into the others; the plain files beside them stay plain.

-g0: what a debugger would want to know is a third of the compile time.
-fwrapv: numbers that leave 64 bits wrap around, as the pure variants of the kernels make them; C alone would not promise that.
"""

import logging
import os

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = [
    "records.kernel",
    "records.kernel_columns",
    "records.kernel_batch",
    "log.fast_path.kernel_producers",
    "log.fast_path.kernel_append",
    "broker.partitions.kernel",
    "broker.handlers.fast_path.kernel_produce",
    "broker.handlers.fast_path.kernel_commit_records",
    "broker.handlers.fast_path.kernel_commit",
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


class AllOrNone(build_ext):
    """Where one kernel cannot be compiled the others go, and so do those that an earlier build has left."""

    def run(self) -> None:
        super().run()
        if self.failed:
            logging.warning("%s cannot be compiled: the plain files serve for all kernels", ", ".join(sorted(self.failed)))
            for path in (path for extension in self.extensions for path in self._places(extension.name)):
                if os.path.exists(path):
                    os.remove(path)

    def build_extension(self, extension: Extension) -> None:
        try:
            super().build_extension(extension)
        except BaseException:
            self.failed.add(extension.name)
            raise

    def initialize_options(self) -> None:
        super().initialize_options()
        self.failed: set[str] = set()

    def _places(self, name: str) -> list[str]:
        """Where a compiled kernel lies: in the build, and beside its source if that is where it is wanted."""
        file = self.get_ext_filename(name)
        return [os.path.join(self.build_lib, file), *([os.path.join("src", file)] if self.inplace else [])]


# A C compiler takes some ten seconds for a kernel.
setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": AllOrNone},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
