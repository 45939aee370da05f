"""How `ottla pipeline describe` names sources and sinks; tests/spark/pipelines/test_commands.py runs it."""

from ottla.cli.pipeline.describe import _source_text, _writes_text


def test_topics_and_files_are_named_shortly() -> None:
    assert _source_text("ottla", {"subscribe": "orders"}) == "topic orders"
    assert _source_text("ottla", {"topic": "large"}) == "topic large"
    assert _source_text("ottla", {}) == "topics of the column topic"
    assert _source_text("csv", {"path": "x.csv"}) == "csv x.csv"
    assert _source_text("rate", {}) == "rate"
    sink = {"kind": "sink", "target": "out", "format": "ottla", "options": {"topic": "x"}}
    assert _writes_text(sink) == "sink out (topic x)"
    assert _writes_text({"kind": "table", "target": "t"}) == "table t"
