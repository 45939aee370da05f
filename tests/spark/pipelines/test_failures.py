"""One sentence from what Spark writes about a broken query."""

from __future__ import annotations

import pytest

from ottla.errors import OttlaError
from ottla.spark.pipelines.errors import FlowFailed, PipelineError
from ottla.spark.pipelines.failures import flow_failed, reason, unread_offsets

PYTHON = """[STREAM_FAILED] Query [id = d, runId = c] terminated with exception: [PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/site/pyspark/worker.py", line 9, in main
    process()
  File "/p/transformations/a.py", line 32, in <lambda>
    bad = udf(lambda x: 1//0)
                        ~^^~
ZeroDivisionError: integer division or modulo by zero
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: bad [id = d, runId = c]
Current Committed Offsets: {org.apache.X@1: {"orders": {"0": 2, "1": 5}}}
Current Available Offsets: {org.apache.X@1: {"orders": {"0": 5, "1": 5, "2": 1}}}

Current State: ACTIVE
Logical Plan:
+- StreamingRelation [X]
"""  # noqa: E501


def test_users_line_reason_and_records_are_named() -> None:
    failure = flow_failed("bad", PYTHON, "/p")
    assert str(failure) == (
        "the flow bad broke at orders-0 offsets 2 to 4, orders-2 offset 0: "
        "ZeroDivisionError: integer division or modulo by zero (transformations/a.py line 32)"
    )
    assert failure.trace == PYTHON


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[STREAM_FAILED] Query x terminated: [DIVIDE_BY_ZERO] Division by zero.\nUse try_divide. SQLSTATE: 22012",
            "Division by zero. Use try_divide",
        ),
        ("requirement failed: no Update mode.\n\tat java", "requirement failed: no Update mode"),
        ("", "Spark gives no reason"),
        (
            ("[PYTHON_DATA_SOURCE_ERROR] Failed: Traceback (most recent call last):\n  File \"/x.py\", line 1, in read\n    y\n"
            "ottla.spark.errors.SourceError: there is no topic a\n\nSQLSTATE: 38000"),
            "there is no topic a",
        ),
    ],
)  # fmt: skip
def test_reason_is_the_innermost_one(text: str, expected: str) -> None:
    assert reason(text) == expected


NOT_MATCHING = (
    "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Stateful operators in the metadata: [(OperatorId: 0 -> "
    "OperatorName: dedupe)]; Stateful operators in current batch: [(OperatorId: 0 -> OperatorName: stateStoreSave)]."
)


STRINGS, NUMBERS = (f"StructType(StructField(k,{kind}Type,true))" for kind in ("String", "Long"))
KEYS = f"[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Existing key_schema={STRINGS} and new key_schema={NUMBERS}.\nIf you want"
VALUES = f"[STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION] new value_schema={NUMBERS} and old value_schema={STRINGS} Please check"
NO_STATE = (
    "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Stateful operators in current batch: [(OperatorId: 0 -> "
    "OperatorName: stateStoreSave)]."
)
NO_STATE_WHY = (
    "it now has an aggregation, and its checkpoint has no state: there was no such operator before, or the state was deleted"
)
SOURCES = "assertion failed: There are [1] sources in the checkpoint offsets and now there are [2] sources requested"
SETTING = "[STATE_STORE_INVALID_CONFIG_AFTER_RESTART] Cannot change a from 1 to 2 between restarts. SQLSTATE: 42K06"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (KEYS, "the columns by which it groups, joins or deduplicates have changed, from (k string) to (k long)"),
        (VALUES, "what it keeps for each key, such as its aggregates, has changed, from (k string) to (k long)"),
        (NOT_MATCHING, "it had dropDuplicates and now has an aggregation"),
        (NO_STATE, NO_STATE_WHY),
        (SOURCES, "it read 1 source and now reads 2 sources"),
        ('For input string: "{"a": {"0": 13}}"', "it reads another kind of source than before"),
        ("No usable value for logOffset", "it reads another kind of source than before"),
        (SETTING, "a setting has changed that must stay as it is: Cannot change a from 1 to 2 between restarts"),
    ],
)
def test_change_that_a_checkpoint_cannot_take_names_reset(said: str, why: str) -> None:
    failed = flow_failed("f", f"[STREAM_FAILED] Query x terminated with exception: {said}")
    assert str(failed) == (
        f"the flow f cannot continue from its checkpoint: {why}. Take the change back, or read everything again with --reset f"
    )


def test_damaged_checkpoint_names_reset_and_lost_memory_does_not() -> None:
    condition = "[CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS] x is lost."
    lost = f"Traceback (most recent call last):\npy4j.protocol.Py4JJavaError: {condition}"
    sentence = str(flow_failed("f", f"[STREAM_FAILED] Query [id = a] terminated with exception: {lost}"))
    assert sentence == (
        "the flow f cannot continue: files of its checkpoint are missing or damaged. Put them back, or read everything again "
        "with --reset f. Spark says: x is lost"
    )
    memory = "[CANNOT_LOAD_STATE_STORE.ROCKSDB_STORE_PROVIDER_OUT_OF_MEMORY] Could not load it."
    assert str(flow_failed("f", memory)) == "the flow f broke: Could not load it"


def test_other_topics_name_reset() -> None:
    said = (
        "[STREAM_FAILED] Query [id = x] ended: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data "
        "source perform latestOffset: ottla.spark.errors.SourceError: a-0 was read before and is gone SQLSTATE: 38000"
    )
    assert str(flow_failed("f", said)) == (
        "the flow f broke: a-0 was read before and is gone. If the flow is to read other topics from now on, start it over "
        "with --reset f"
    )


def test_many_partitions_are_counted() -> None:
    offsets = ", ".join(f'"{number}": 2' for number in range(5))
    text = f'Current Committed Offsets: {{}}\nCurrent Available Offsets: {{X@1: {{"a": {{{offsets}}}}}}}\n'
    assert unread_offsets(text) == "a-0 offsets 0 to 1, a-1 offsets 0 to 1, a-2 offsets 0 to 1 and 2 more partitions"
    assert unread_offsets("no such lines") == ""


def test_broken_flow_is_a_pipeline_error_with_its_trace() -> None:
    error = FlowFailed("f", "the flow f broke", "long trace")
    assert isinstance(error, PipelineError)
    assert isinstance(error, OttlaError)
    assert (error.flow, str(error), error.trace) == ("f", "the flow f broke", "long trace")
