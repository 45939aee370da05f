"""Every error code has one class, of the kind that Apache Kafka gives it, and its errors can be raised, caught and pickled."""

import builtins
import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.apache_kafka import ApacheKafka

from ottla import errors
from ottla.errors import KafkaError, class_of, exception_of
from ottla.errors.codes import ErrorCode
from ottla.errors.kinds import (
    NO_CODE,
    ApplicationRecoverableError,
    ClientError,
    InvalidConfigurationError,
    InvalidMetadataError,
    RefreshRetriableError,
    RetriableError,
    TimeoutError,
)

CODES = [code for code in ErrorCode if code != ErrorCode.NONE]

PRINT_CLASSES = """
public class PrintClasses {
    public static void main(String[] args) {
        for (var error : org.apache.kafka.common.protocol.Errors.values()) {
            if (error.exception() == null) continue;
            System.out.print(error.code());
            for (Class<?> kind = error.exception().getClass(); kind != RuntimeException.class; kind = kind.getSuperclass())
                System.out.print(" " + kind.getSimpleName());
            System.out.println();
        }
    }
}
"""


def public_classes() -> list[type[ClientError]]:
    values = [getattr(errors, name) for name in errors.__all__]
    return [value for value in values if isinstance(value, type) and issubclass(value, ClientError)]


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_every_code_has_one_class(code: ErrorCode) -> None:
    kind = class_of(code)
    assert kind is not None
    assert getattr(errors, kind.__name__) is kind
    error = exception_of(code)
    assert type(error) is kind
    assert error.code == kind.code == code
    assert error.name == code.name
    assert error.is_retriable is isinstance(error, RetriableError) is code.retriable
    assert isinstance(error, InvalidMetadataError) is code.refreshes_metadata
    assert str(error) == code.meaning == " ".join((kind.__doc__ or "").split())


def test_no_two_codes_share_a_class() -> None:
    assert len({class_of(code) for code in CODES}) == len(CODES)
    assert class_of(ErrorCode.NONE) is None


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_plain_error_of_a_broker_has_the_flags_of_its_code(code: ErrorCode) -> None:
    error = KafkaError(code, "no")
    assert error.is_retriable is code.retriable
    assert error.name == code.name
    assert error.is_unsent is False


def test_second_class_for_a_code_is_refused() -> None:
    with pytest.raises(AssertionError, match="NOT_CONTROLLER has two classes"):
        type("Second", (ClientError,), {}, code=ErrorCode.NOT_CONTROLLER)
    assert class_of(41) is errors.NotControllerError


def test_subclass_of_a_program_keeps_the_code_and_its_module() -> None:
    class Mine(errors.NotControllerError):
        pass

    assert Mine("x").code == 41
    assert Mine.__module__ == __name__
    assert class_of(41) is errors.NotControllerError


def test_timeouts_are_caught_as_pythons_own() -> None:
    with pytest.raises(builtins.TimeoutError, match=r"^too late$"):
        raise exception_of(7, "too late")
    assert issubclass(TimeoutError, builtins.TimeoutError)
    assert TimeoutError("x").is_retriable


def test_unsent_is_set_by_the_maker() -> None:
    assert errors.NetworkError().is_unsent is False
    assert errors.NetworkError("gone", is_unsent=True).is_unsent is True


def test_error_without_a_code_is_named_by_its_class() -> None:
    assert errors.WakeupError().name == "WakeupError"
    assert errors.WakeupError().code == NO_CODE
    assert errors.WakeupError().is_retriable is False
    assert errors.RetriableCommitFailedError().is_retriable is True


@pytest.mark.parametrize("kind", public_classes(), ids=lambda kind: kind.__name__)
def test_error_survives_pickling(kind: type[ClientError]) -> None:
    position: dict[str, Any] = {"topic": "t", "partition": 1, "offset": 2}
    places = {errors.DeserializationError: position, errors.CorruptBatchError: position | {"next_offset": 3}}
    error = kind("what happened", **places.get(kind, {}))
    error.is_unsent = True
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == "what happened"
    assert vars(again) == vars(error)
    assert kind.__module__ == "ottla.errors"


def test_plain_error_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(KafkaError(87, "bad", ((1, "no key"),))))
    assert type(again) is KafkaError
    assert (again.code, str(again), again.record_errors) == (87, "bad", ((1, "no key"),))


@pytest.mark.slow
def test_kinds_are_those_of_apache_kafka(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    source = tmp_path / "PrintClasses.java"
    source.write_text(PRINT_CLASSES)
    kinds: list[type[ClientError]] = [
        RetriableError,
        RefreshRetriableError,
        InvalidMetadataError,
        ApplicationRecoverableError,
        InvalidConfigurationError,
        errors.AuthenticationError,
        errors.AuthorizationError,
        errors.InvalidOffsetError,
    ]
    rows = [line.split() for line in apache_kafka.run_java(source).stdout.splitlines()]
    assert [int(row[0]) for row in rows] == [int(code) for code in CODES]
    for code, name, *parents in rows:
        kind = class_of(int(code))
        assert kind is not None
        # Kafka has one class for every timeout. Ours are told apart: the server's answer, and the client's own timeouts.
        expected = "RequestTimedOutError" if name == "TimeoutException" else name.removesuffix("Exception") + "Error"
        assert kind.__name__ == expected
        spelt = {parent.removesuffix("Exception") + "Error" for parent in [name, *parents]}
        assert [base.__name__ for base in kinds if issubclass(kind, base)] == [
            base.__name__ for base in kinds if base.__name__ in spelt
        ]
