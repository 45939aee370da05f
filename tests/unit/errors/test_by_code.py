"""Codes become exceptions, also where nothing else has loaded their classes."""

import subprocess
import sys

import pytest

from ottla import errors
from ottla.errors import ClientError, exception_of


def test_given_text_replaces_the_general_one() -> None:
    error = exception_of(3, "topic t does not exist")
    assert str(error) == "topic t does not exist"
    assert isinstance(error, errors.UnknownTopicOrPartitionError)


def test_code_of_a_newer_server_is_kept() -> None:
    error = exception_of(9999)
    assert type(error) is ClientError
    assert (error.code, error.name, error.is_retriable) == (9999, "UNKNOWN_ERROR_9999", False)
    assert "9999" in str(error)


def test_code_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="no error"):
        exception_of(0)


@pytest.mark.parametrize(
    "program",
    [
        "from ottla.errors.by_code import exception_of; print(type(exception_of(41)).__name__)",
        "from ottla.errors import exception_of; print(type(exception_of(41)).__name__)",
        "from ottla import errors; print(errors.NotControllerError.__name__)",
    ],
)
def test_classes_are_loaded_when_first_used(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "NotControllerError\n"


def test_servers_do_not_load_the_classes_of_clients() -> None:
    program = (
        "import sys, ottla.errors, ottla.errors.codes; print([name for name in sys.modules if name == 'ottla.errors.kinds'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_misspelt_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match=r"'ottla.errors' has no attribute 'TimoutError'"):
        _ = errors.TimoutError  # type: ignore[attr-defined]
    assert not hasattr(errors, "NoSuchError")
