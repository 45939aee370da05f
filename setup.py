"""Only the compiled kernels are declared here; everything else is in pyproject.toml.

Each kernel is a plain Python file that Cython may compile with the `.pxd` beside it. `optional=True`: where there is no C
compiler the install goes on and the plain file is what gets imported.
"""

from setuptools import Extension, setup

KERNELS: list[str] = []


def extensions() -> list[Extension]:
    if not KERNELS:
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    modules = [Extension(f"ottla.records.{name}", [f"src/ottla/records/{name}.py"], optional=True) for name in KERNELS]
    return list(cythonize(modules, build_dir="build/cython", language_level=3))


setup(ext_modules=extensions())
