"""Masking: which fields go, and what takes their place."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.console.masking import DEPTH_MAX, HIDDEN, How, Masking, Rule, parse_path, rule_of
from ottla.errors import ArgumentError

ORDER = {"id": 7, "customer": {"email": "ada@example.com", "name": "Ada"}, "items": [{"price": 3}, {"price": 4}], "a b": 1}


def masked(path: str, content: Any = ORDER, how: How = How.HIDE) -> Any:
    return Masking([Rule(path=path, how=how)], b"secret").masked("orders", "value", content, is_parsed=True)


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("$.customer.email", {"customer": {"email": HIDDEN, "name": "Ada"}}),
        ("$.customer", {"customer": HIDDEN}),
        ("$['a b']", {"a b": HIDDEN}),
        ('$["a b"]', {"a b": HIDDEN}),
        ("$.items[*].price", {"items": [{"price": HIDDEN}, {"price": HIDDEN}]}),
        ("$.items[1].price", {"items": [{"price": 3}, {"price": HIDDEN}]}),
        ("$.items[0]", {"items": [HIDDEN, {"price": 4}]}),
        ("$..price", {"items": [{"price": HIDDEN}, {"price": HIDDEN}]}),
        ("$..email", {"customer": {"email": HIDDEN, "name": "Ada"}}),
        ("$.customer.*", {"customer": {"email": HIDDEN, "name": HIDDEN}}),
        ("$.nothing.here", {}),
        ("$.id.deeper", {}),
    ],
)
def test_path_hides_what_it_names_and_nothing_else(path: str, changed: dict[str, Any]) -> None:
    before = json.dumps(ORDER)
    assert masked(path) == ORDER | changed
    assert json.dumps(ORDER) == before


def test_ways_to_mask() -> None:
    assert masked("$.customer.email", how=How.REMOVE)["customer"] == {"name": "Ada"}
    assert masked("$.items[0]", how=How.REMOVE)["items"] == [{"price": 4}]
    assert masked("$.customer.email", how=How.LAST)["customer"]["email"] == f"{HIDDEN}.com"
    assert masked("$.customer.name", how=How.LAST)["customer"]["name"] == HIDDEN  # four of three letters would be all
    hashed = masked("$.customer.email", how=How.HASH)["customer"]["email"]
    assert hashed == masked("$..email", {"email": "ada@example.com"}, How.HASH)["email"]
    assert hashed != masked("$..email", {"email": "bob@example.com"}, How.HASH)["email"]
    other = Masking([Rule(path="$..email", how=How.HASH)], b"another secret")
    assert other.masked("t", "value", {"email": "ada@example.com"}, is_parsed=True)["email"] != hashed


@pytest.mark.parametrize("content", ["plain text", "12", '"a text in JSON"', '{"broken": '])
def test_content_without_fields_is_hidden_whole(content: str) -> None:
    masking = Masking([Rule(path="$.email")])
    assert masking.masked("t", "value", content, is_parsed=False) == HIDDEN


def test_text_that_is_json_is_masked_by_its_fields() -> None:
    found = Masking([Rule(path="$.email")]).masked("t", "value", '{"email": "x", "id": 1}', is_parsed=False)
    assert json.loads(found) == {"email": HIDDEN, "id": 1}


def test_rules_are_for_their_topics_and_parts() -> None:
    masking = Masking([Rule("orders*", "key", "$.id")])
    assert masking.concerns("orders-eu", "key")
    assert not masking.concerns("orders", "value")
    assert not masking.concerns("payments", "key")
    assert masking.masked("payments", "key", {"id": 1}, is_parsed=True) == {"id": 1}
    assert masking.masked("orders", "key", None, is_parsed=True) is None
    assert not Masking()


def test_headers_by_name() -> None:
    headers: list[tuple[str, bytes | None]] = [("authorization", b"Bearer x"), ("trace", b"1"), ("authorization", None)]
    masking = Masking([Rule(part="headers", path="$.authorization")])
    assert masking.headers("t", headers) == [("authorization", HIDDEN.encode()), ("trace", b"1"), ("authorization", None)]
    assert Masking([Rule(part="headers", path="$", how=How.REMOVE)]).headers("t", headers) == []


@pytest.mark.parametrize("text", ["", "email", "$.", "$.a[", "$.a[x]", "$a.b c"])
def test_mistaken_paths_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="is no path"):
        parse_path(text)


def test_mistaken_rules_are_refused() -> None:
    with pytest.raises(ArgumentError, match="is no way to mask"):
        rule_of({"how": "blur"})
    with pytest.raises(ArgumentError, match="is no part"):
        rule_of({"part": "body"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "secret"]), inner, max_size=3),
    max_leaves=30,
)


def _holds(value: Any) -> bool:
    if isinstance(value, dict):
        return any((name == "secret" and each not in (None, HIDDEN)) or _holds(each) for name, each in value.items())
    return any(map(_holds, value)) if isinstance(value, list) else False


@given(JSON)
def test_no_secret_is_left_anywhere(content: Any) -> None:
    assert not _holds(masked("$..secret", {"root": content}))


def test_what_is_too_deep_to_look_at_is_hidden() -> None:
    content: Any = {"secret": "x"}
    for _ in range(DEPTH_MAX + 10):
        content = [content]
    assert "x" not in json.dumps(masked("$..secret", content))
