"""One sentence from what Spark writes about a broken query."""

from __future__ import annotations

import pytest

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
            "Division by zero. Use try_divide.",
        ),
        ("requirement failed: no Update mode.\n\tat java", "requirement failed: no Update mode."),
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


def test_change_that_a_checkpoint_cannot_take_names_reset() -> None:
    text = (
        "[STREAM_FAILED] Query x terminated: [STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match "
        f"existing state key schema. {'x' * 900} SQLSTATE: 42K06"
    )
    sentence = str(flow_failed("counts", text))
    assert sentence.startswith("the flow counts cannot continue from its checkpoint, because its query has changed: ")
    assert "read everything again with --reset counts. Spark says: Provided key schema" in sentence


def test_many_partitions_are_counted() -> None:
    offsets = ", ".join(f'"{number}": 2' for number in range(5))
    text = f'Current Committed Offsets: {{}}\nCurrent Available Offsets: {{X@1: {{"a": {{{offsets}}}}}}}\n'
    assert unread_offsets(text) == "a-0 offsets 0 to 1, a-1 offsets 0 to 1, a-2 offsets 0 to 1 and 2 more partitions"
    assert unread_offsets("no such lines") == ""
