"""Only the compiled kernels are declared here; everything else is in pyproject.toml.

Each kernel is a plain Python file that Cython may compile with the `.pxd` beside it. Where there is no C compiler, or a Cython
that cannot compile them, the install goes on and the plain files are what gets imported. All are compiled or none is: they
build on each other, and a compiled one does not take what comes from a plain one.
`records/kernel_fields.pxd` and `kernel_views.pxd` are compiled into the others; the plain files beside them stay plain.
`SHARED` has no source: it holds what Cython would otherwise compile into each kernel for memoryviews and functions. That halves
the time to compile them all (docs/decisions/0071).

-g0: debug information is a third of the compile time.
-fwrapv: 64-bit integers wrap around on overflow, as in the pure kernels; C alone would not promise that.
"""

import logging
import os
import shutil
import sys

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
SHARED = "records.kernel_shared"
C_FILES = "build/cython"


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    sources = {name: [f"src/ottla/{name.replace('.', '/')}.py"] for name in KERNELS} | {SHARED: []}
    modules = [
        Extension(f"ottla.{name}", files, extra_compile_args=["-O3", "-g0", "-fwrapv"], depends=["setup.py"])
        for name, files in sources.items()
    ]
    shared = f"ottla.{SHARED}"
    try:
        modules = cythonize(modules, build_dir=C_FILES, language_level=3, shared_utility_qualified_name=shared)
    except Exception as problem:
        logging.warning("the kernels are not compiled, the plain files serve instead: %s", problem)
        return []
    for module in modules:
        module.optional = True  # set here, because cythonize does not hand it on
    return list(modules)


class AllOrNone(build_ext):
    """Compile the kernels that have changed. If one cannot be compiled, all are removed, also those of an earlier build."""

    def run(self) -> None:
        self._take_earlier()
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
        self.done += 1
        # Read by tools/set_up.py; pip shows it with -v.
        print(f"kernels compiled: {self.done}/{len(self.extensions)}", file=sys.stderr, flush=True)  # noqa: T201

    def initialize_options(self) -> None:
        super().initialize_options()
        self.failed: set[str] = set()
        self.done = 0

    def _take_earlier(self) -> None:
        """Put kernels of an earlier build where this one looks for them: setuptools skips those newer than their sources."""
        for extension in self.extensions:
            wanted, *beside_source = self._places(extension.name)
            for path in filter(os.path.exists, beside_source):
                os.makedirs(os.path.dirname(wanted), exist_ok=True)
                shutil.copy2(path, wanted)

    def _places(self, name: str) -> list[str]:
        """Where a compiled kernel lies: in the build, and beside its source if that is where it is wanted."""
        file = self.get_ext_filename(name)
        return [os.path.join(self.build_lib, file), *([os.path.join("src", file)] if self.inplace else [])]


# A C compiler takes 2 to 5 seconds for a kernel.
setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": AllOrNone},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
