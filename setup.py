"""Declares the compiled kernels; everything else is in pyproject.toml.

Each kernel is a Python file that Cython compiles with the `.pxd` beside it. Without a C compiler, or with a Cython that cannot
compile them, the install continues and Python imports the pure files. Either all are compiled or none: a compiled kernel does
not accept objects of a pure one. `OTTLA_KERNELS` in the environment changes that:

    OTTLA_KERNELS=none       compile nothing: the wheel is `py3-none-any`
    OTTLA_KERNELS=required   a kernel that cannot be compiled fails the build (tools/dist.py, release builds)

`records/kernel_fields.pxd` and `kernel_views.pxd` are compiled into the others; the Python files beside them stay pure.
`SHARED` has no source: it holds Cython's support code for memoryviews and functions, which would otherwise be compiled into
each kernel. That halves the compile time (docs/decisions/0002).

Cython runs when the kernels are built, not when pip asks for metadata or makes an sdist: that is seconds each time.
"""

import glob
import logging
import multiprocessing
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

FLAGS = [
    "-O1",  # -O3 doubles the compile time, and no request gets faster by it
    "-g0",  # debug information is a third of the compile time
    "-w",  # Python's own flags ask for warnings about C that nobody wrote: a sixth of the compile time
    "-fwrapv",  # 64-bit integers wrap around on overflow, as in the pure kernels; in C overflow is undefined
    f"-ffile-prefix-map={os.getcwd()}=.",  # equal files from any folder
]
HOT = {"records.kernel", "records.kernel_consume"}
"""These decode single records: -O2 pays here."""

WANTED = os.environ.get("OTTLA_KERNELS", "")


def extensions() -> list[Extension]:
    if WANTED not in ("", "none", "required"):
        sys.exit(f"OTTLA_KERNELS={WANTED}: it is none, required or empty")
    if WANTED == "none":
        return []
    try:
        import Cython  # noqa: F401
    except ImportError:
        if WANTED == "required":
            sys.exit("OTTLA_KERNELS=required: the kernels cannot be compiled, because Cython is not installed")
        return []
    return [
        Extension(
            f"ottla.{name}",
            [] if name == SHARED else [f"src/ottla/{name.replace('.', '/')}.py"],
            extra_compile_args=[*FLAGS, "-O2"] if name in HOT else FLAGS,  # the last -O counts
            extra_link_args=["-Wl,-s"] if sys.platform == "linux" else [],
            depends=["setup.py", *INCLUDED],
            optional=True,
        )
        for name in [*KERNELS, SHARED]
    ]


def translate(modules: list[Extension]) -> None:
    """Write the kernels' C files, which become their sources; on all processors, where a process can be forked."""
    from Cython.Build import cythonize

    forks = multiprocessing.get_start_method() == "fork"  # others would run this file again in each process
    written = cythonize(
        modules,
        build_dir=C_FILES,
        language_level=3,
        shared_utility_qualified_name=f"ottla.{SHARED}",
        compiler_directives={"auto_pickle": False},  # a fifth of the C code; what users pickle has a method for it
        force=_is_outdated(),
        nthreads=(os.cpu_count() or 0) if forks else 0,
    )
    sources = {module.name: module.sources for module in written}
    for module in modules:
        module.sources = sources[module.name]


def _is_outdated() -> bool:
    """Whether a file that is compiled into every kernel has changed. Cython does not follow `from package cimport module`."""
    written = [os.path.getmtime(path) for path in glob.glob(f"{C_FILES}/**/*.c", recursive=True)]
    return bool(written) and min(written) < max(map(os.path.getmtime, INCLUDED))


SLOWER = """
ottla: {}, so the kernels run as pure Python. Everything works; a node takes
4 to 16 times the processor time for a produce request, a client 10 to 50 times for a record. For speed, install a
C compiler and Python's header files (apt install gcc python3-dev), then install ottla again with
pip install --force-reinstall --no-deps --no-cache-dir.
"""


def _tell_terminal(problem: str) -> None:
    """Tell the user: pip shows nothing of what a build prints, unless it fails."""
    if sys.stderr.isatty():
        return  # shown already
    try:
        with open("/dev/tty", "w", encoding="utf-8") as terminal:
            terminal.write(SLOWER.format(problem))
    except OSError:
        pass  # no terminal: `ottla --version` says it


class AllOrNone(build_ext):
    """Compile the kernels that have changed. If one cannot be compiled, all are removed, also those of an earlier build."""

    def run(self) -> None:
        self._copy_earlier()
        try:
            translate(self.extensions)
        except Exception as problem:
            self._run_pure(f"Cython cannot translate the kernels: {problem}")
            return
        super().run()
        if self.failed:
            which = "all kernels" if len(self.failed) == len(self.extensions) else ", ".join(sorted(self.failed))
            self._run_pure(f"{which} cannot be compiled")

    def _run_pure(self, problem: str) -> None:
        for path in (path for extension in self.extensions for path in self._places(extension.name)):
            if os.path.exists(path):
                os.remove(path)
        if WANTED == "required":
            sys.exit(f"OTTLA_KERNELS=required: {problem}")
        logging.warning("%s: all kernels run as pure Python", problem)
        _tell_terminal(problem)

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
