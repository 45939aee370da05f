"""`Results`: lookups, errors, and the warning about errors that were never looked at."""

import gc
import logging

import pytest

from ottla.client.admin.quorum import QuorumReplica
from ottla.client.admin.results import Results, missing, results_for
from ottla.client.admin.topic_descriptions import TopicListing
from ottla.client.admin.topics import CreatedTopic
from ottla.errors import TopicExistsError, UnknownServerError
from ottla.ids import uuid_parse

FAILURE = TopicExistsError("topic b exists")


def mixed() -> Results[str, int]:
    return Results({"a": 1, "b": FAILURE, "c": 3})


def test_lookup_returns_the_value_or_raises_the_error() -> None:
    results = mixed()
    assert results["a"] == 1
    with pytest.raises(TopicExistsError, match="topic b exists"):
        results["b"]
    with pytest.raises(KeyError):
        results["d"]


def test_results_are_a_mapping_of_all_items_in_order() -> None:
    results = mixed()
    assert list(results) == ["a", "b", "c"]
    assert len(results) == 3
    assert "b" in results
    assert results.errors == {"b": FAILURE}
    assert results.values_found == {"a": 1, "c": 3}
    assert "topic b exists" in repr(results)


def test_raise_first_raises_only_if_an_item_failed() -> None:
    with pytest.raises(TopicExistsError):
        mixed().raise_first()
    fine = Results({"a": 1})
    assert fine.raise_first() is fine


def test_item_that_the_response_lacks_gets_an_error() -> None:
    results = results_for(["a", "b"], {"b": 2, "z": 9})
    assert list(results) == ["a", "b"]
    assert isinstance(results.errors["a"], UnknownServerError)


def test_error_that_was_never_looked_at_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="ottla.admin"):
        mixed()
        gc.collect()
    assert "topic b exists" in caplog.text
    assert "raise_first" in caplog.text


@pytest.mark.parametrize("look", [lambda each: each.errors, repr])
def test_error_that_was_looked_at_is_not_logged(look: object, caplog: pytest.LogCaptureFixture) -> None:
    assert callable(look)
    with caplog.at_level(logging.WARNING, logger="ottla.admin"):
        look(mixed())
        gc.collect()
    assert caplog.text == ""


def test_value_of_a_mixed_result_does_not_silence_the_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="ottla.admin"):
        assert mixed()["a"] == 1
        gc.collect()
    assert "never looked at" in caplog.text


def test_ids_are_shown_as_kafka_prints_them() -> None:
    topic_id = uuid_parse("3Qb9xZ0ySaKJ8Vj3m0n2Xw")
    listing = TopicListing("orders", topic_id, False, 3)
    assert repr(listing) == "TopicListing(name='orders', id=3Qb9xZ0ySaKJ8Vj3m0n2Xw, is_internal=False, partitions=3)"
    assert repr(Results({topic_id: 1, "orders": 2})) == "Results({3Qb9xZ0ySaKJ8Vj3m0n2Xw: 1, 'orders': 2})"
    assert "no result for 3Qb9xZ0ySaKJ8Vj3m0n2Xw: try again" in str(missing(topic_id))
    for record in (CreatedTopic("orders", topic_id, 1, 1, None), QuorumReplica(1, topic_id, 5, None, None)):
        assert "id=3Qb9xZ0ySaKJ8Vj3m0n2Xw" in repr(record)
