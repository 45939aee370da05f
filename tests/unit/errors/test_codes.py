"""The error table: complete, in plain words, and the same as Apache Kafka's."""

from pathlib import Path

import pytest
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.errors.codes import ErrorCode, error_meaning, error_name, error_of

PRINT_ERRORS = """
public class PrintErrors {
    public static void main(String[] args) {
        for (var error : org.apache.kafka.common.protocol.Errors.values()) {
            var exception = error.exception();
            System.out.println(error.code() + " " + error.name() + " "
                + (exception instanceof org.apache.kafka.common.errors.RetriableException) + " "
                + (exception instanceof org.apache.kafka.common.errors.InvalidMetadataException));
        }
    }
}
"""


def test_codes_are_plain_ints() -> None:
    assert ErrorCode.NOT_CONTROLLER == 41
    assert ErrorCode.NOT_CONTROLLER.to_bytes(2, "big") == b"\x00\x29"
    assert {41: "found"}[ErrorCode.NOT_CONTROLLER] == "found"
    assert int(ErrorCode.UNKNOWN_SERVER_ERROR) == -1


def test_table_has_every_code() -> None:
    assert [int(error) for error in ErrorCode] == list(range(-1, 134))
    assert sum(error.retriable for error in ErrorCode) == 32
    assert all(error.retriable for error in ErrorCode if error.refreshes_metadata)


@pytest.mark.parametrize("error", list(ErrorCode), ids=lambda error: error.name)
def test_meaning_is_one_sentence(error: ErrorCode) -> None:
    assert error.meaning.endswith(".")
    assert ". " not in error.meaning
    assert error.name not in error.meaning


def test_meanings_differ() -> None:
    assert len({error.meaning for error in ErrorCode}) == len(ErrorCode)


def test_unknown_code_has_a_name_and_a_meaning() -> None:
    assert error_of(9999) is None
    assert error_name(9999) == "UNKNOWN_ERROR_9999"
    assert "9999" in error_meaning(9999)
    assert error_of(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error_name(3) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert error_meaning(3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.meaning


@pytest.mark.slow
def test_same_as_apache_kafka(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    source = tmp_path / "PrintErrors.java"
    source.write_text(PRINT_ERRORS)
    theirs = [line.split() for line in apache_kafka.run_java(source).stdout.splitlines()]
    ours = [[str(int(error)), error.name, flag(error.retriable), flag(error.refreshes_metadata)] for error in ErrorCode]
    assert theirs == ours


def flag(value: bool) -> str:
    return "true" if value else "false"
