"""The checksum function is that of the crc32c package, without importing the package."""

import subprocess
import sys

import crc32c as package

from ottla.records.checksum import crc32c


def test_it_is_the_packages_function() -> None:
    assert crc32c(b"123456789") == package.crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283


def test_the_package_itself_is_not_imported() -> None:
    code = "import sys, ottla.records.batch; print(sorted({'crc32c', 'importlib.metadata', 'email'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
