"""Declares the compiled kernels; everything else is in pyproject.toml.

Each kernel is a Python file that Cython compiles with the `.pxd` beside it. Without a C compiler, or with a Cython that cannot
compile them, the install continues and Python imports the pure files. Either all are compiled or none: a compiled kernel does
not accept objects of a pure one.
`records/kernel_fields.pxd` and `kernel_views.pxd` are compiled into the others; the Python files beside them stay pure.
`SHARED` has no source: it holds Cython's support code for memoryviews and functions, which would otherwise be compiled into
each kernel. That halves the compile time (docs/decisions/0002).

-g0: debug information is a third of the compile time.
-fwrapv: 64-bit integers wrap around on overflow, as in the pure kernels; in C overflow is undefined.
"""

import glob
import logging
import os
import shutil
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = [
    "records.kernel",
    "records.kernel_columns",
    "records.kernel_frames",
    "records.kernel_batch",
    "records.kernel_accumulate",
    "records.kernel_many",
    "records.kernel_consume",
    "records.kernel_partition",
    "log.fast_path.kernel_producers",
    "log.fast_path.kernel_append",
    "broker.partitions.kernel",
    "broker.handlers.fast_path.kernel_produce",
    "broker.handlers.fast_path.kernel_commit_records",
    "broker.handlers.fast_path.kernel_commit",
]
SHARED = "records.kernel_shared"
C_FILES = "build/cython"
INCLUDED = ["src/ottla/records/kernel_fields.pxd", "src/ottla/records/kernel_views.pxd"]


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    sources = {name: [f"src/ottla/{name.replace('.', '/')}.py"] for name in KERNELS} | {SHARED: []}
    modules = [
        Extension(f"ottla.{name}", files, extra_compile_args=["-O3", "-g0", "-fwrapv"], depends=["setup.py", *INCLUDED])
        for name, files in sources.items()
    ]
    shared = f"ottla.{SHARED}"
    try:
        modules = cythonize(
            modules, build_dir=C_FILES, language_level=3, shared_utility_qualified_name=shared, force=_is_outdated()
        )
    except Exception as problem:
        logging.warning("the kernels are not compiled and run as pure Python: %s", problem)
        return []
    for module in modules:
        module.optional = True  # set here: cythonize drops it
    return list(modules)


def _is_outdated() -> bool:
    """Whether a file that is compiled into every kernel has changed. Cython does not follow `from package cimport module`."""
    written = [os.path.getmtime(path) for path in glob.glob(f"{C_FILES}/**/*.c", recursive=True)]
    return bool(written) and min(written) < max(map(os.path.getmtime, INCLUDED))


class AllOrNone(build_ext):
    """Compile the kernels that have changed. If one cannot be compiled, all are removed, also those of an earlier build."""

    def run(self) -> None:
        self._copy_earlier()
        super().run()
        if self.failed:
            logging.warning("%s cannot be compiled: all kernels run as pure Python", ", ".join(sorted(self.failed)))
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

    def _copy_earlier(self) -> None:
        """Copy kernels of an earlier build to where this one expects them: setuptools skips those newer than their sources."""
        for extension in self.extensions:
            wanted, *beside_source = self._places(extension.name)
            for path in filter(os.path.exists, beside_source):
                os.makedirs(os.path.dirname(wanted), exist_ok=True)
                shutil.copy2(path, wanted)

    def _places(self, name: str) -> list[str]:
        """The paths of a compiled kernel: in the build folder and, for an in-place build, beside its source."""
        file = self.get_ext_filename(name)
        return [os.path.join(self.build_lib, file), *([os.path.join("src", file)] if self.inplace else [])]


# A C compiler takes 2 to 5 seconds for a kernel.
setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": AllOrNone},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
