"""The options of `ottla produce`."""

from ottla.cli.produce.options import ProduceOptions


def test_topic_in_messages() -> None:
    assert ProduceOptions("orders").shown_topic == "orders"
    assert ProduceOptions(None).shown_topic == "their topics"
