"""`json_of`: dataclasses and pydantic models as JSON, with errors that name the field."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NewType, Optional
from uuid import UUID

import pydantic
import pydantic.dataclasses
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla import json_of
from ottla.errors import ConfigError, SerializationError

Cents = NewType("Cents", int)


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Rank(IntEnum):
    FIRST = 1
    SECOND = 2


@dataclasses.dataclass(frozen=True)
class Item:
    name: str
    price: Decimal
    size: Size = Size.SMALL


@dataclasses.dataclass
class Everything:
    number: int
    ratio: float
    is_open: bool
    at: datetime
    day: date
    clock: time
    lasts: timedelta
    id: UUID
    data: bytes
    items: list[Item]
    by_name: dict[str, Item]
    by_rank: dict[Rank, int]
    pair: tuple[int, str]
    row: tuple[int, ...]
    tags: frozenset[str]
    kind: Literal["a", 1]
    cents: Cents
    note: Annotated[str, "short"]
    maybe: Optional[Item]  # noqa: UP045 - the older spelling
    either: int | str | None
    anything: Any
    parent: Everything | None = None
    old: list[int] = dataclasses.field(default_factory=list)


ITEMS = st.builds(Item, st.text(), st.decimals(allow_nan=False), st.sampled_from(Size))
EVERYTHING = st.builds(
    Everything,
    ratio=st.floats(allow_nan=False, allow_infinity=False),
    at=st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30))])),
    lasts=st.integers(-(10**12), 10**12).map(lambda ms: timedelta(milliseconds=ms)),
    items=st.lists(ITEMS, max_size=3),
    by_name=st.dictionaries(st.text(), ITEMS, max_size=2),
    by_rank=st.dictionaries(st.sampled_from(Rank), st.integers(), max_size=2),
    row=st.lists(st.integers(), max_size=3).map(tuple),
    tags=st.frozensets(st.text(), max_size=3),
    cents=st.integers().map(Cents),
    maybe=st.none() | ITEMS,
    anything=st.none() | st.integers() | st.lists(st.text(), max_size=2),
    parent=st.none(),
    old=st.lists(st.integers(), max_size=2),
)


@settings(max_examples=30)
@given(EVERYTHING, st.booleans())
def test_dataclass_comes_back_as_it_was(value: Everything, has_parent: bool) -> None:
    if has_parent:
        value = dataclasses.replace(value, parent=value)
    form = json_of(Everything)
    assert form.deserialize("t", (), form.serialize("t", (), value)) == value


def test_missing_fields_take_defaults_and_unknown_ones_are_ignored() -> None:
    assert json_of(Item).deserialize("t", (), b'{"name": "tea", "price": "2.50", "added": 1}') == Item("tea", Decimal("2.50"))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{", "it is not JSON"),
        (b"[]", "it is not an Order: expected an object with the fields of Order, got []"),
        (b'{"items": []}', "it is not an Order: table: the field is missing"),
        (b'{"table": "1", "items": []}', 'it is not an Order: table: expected a whole number, got "1"'),
        (b'{"table": true, "items": []}', "table: expected a whole number, got true"),
        (b'{"table": 1, "items": [{"name": "tea", "price": "x"}]}', 'items[0].price: expected a decimal, got "x"'),
        (b'{"table": 1, "items": [], "at": "noon"}', 'at: expected a date and time of ISO 8601, got "noon"'),
        (
            b'{"table": 1, "items": [{"name": "a", "price": 1, "size": "xl"}]}',
            'items[0].size: expected one of "s", "l", got "xl"',
        ),
        (b'{"table": -1, "items": []}', "it is not an Order: Order refused it: ValueError: there is no table -1"),
    ],
)
def test_error_names_the_field(data: bytes, text: str) -> None:
    @dataclasses.dataclass
    class Order:
        table: int
        items: list[Item]
        at: datetime | None = None

        def __post_init__(self) -> None:
            if self.table < 0:
                raise ValueError(f"there is no table {self.table}")

    with pytest.raises(ValueError, match="it is not") as raised:
        json_of(_renamed(Order, "Order")).deserialize("t", (), data)
    assert text in str(raised.value)


def _renamed(kind: type, name: str) -> type:
    kind.__qualname__ = name
    return kind


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Item("tea", Decimal(1)), "the value for topic t is Item, and json_of(Everything) takes only that class"),
        ({"a": 1}, "the value for topic t is dict"),
    ],
)
def test_value_of_another_class_is_refused(value: Any, text: str) -> None:
    with pytest.raises(SerializationError) as raised:
        json_of(Everything).serialize("t", (), value)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, object()]}, 'value["b"][1]: JSON has no form for object'),
        ([1.0, float("nan")], "value[1]: JSON has no form for infinity and not-a-number"),
        ({(1, 2): 3}, "value: a key of an object cannot be tuple"),
    ],
)
def test_value_without_a_form_in_json_is_refused_by_its_field(value: Any, text: str) -> None:
    with pytest.raises(SerializationError) as raised:
        json_of(Box).serialize("t", (), Box(value))
    assert text in str(raised.value)


@dataclasses.dataclass
class Box:
    value: Any


def test_class_that_json_cannot_hold_is_refused_at_once() -> None:
    @dataclasses.dataclass
    class Wrong:
        value: complex

    with pytest.raises(ConfigError, match="cannot read a field of type <class 'complex'>"):
        json_of(Wrong)
    with pytest.raises(ConfigError, match="takes a dataclass or a pydantic model"):
        json_of(dict)


class Drink(pydantic.BaseModel):
    name: str
    price: Decimal = pydantic.Field(alias="price_eur", gt=0)
    served: datetime | None = None


@pydantic.dataclasses.dataclass
class Round:
    drinks: list[Drink]


@pytest.mark.parametrize("kind", [Drink, Round])
def test_pydantic_comes_back_as_it_was(kind: Any) -> None:
    drink = Drink(name="tea", price_eur=Decimal("2.50"))
    value = drink if kind is Drink else Round([drink])
    form = json_of(kind)
    data = form.serialize("t", (), value)
    assert b'"price_eur"' in data
    assert form.deserialize("t", (), data) == value


def test_error_of_pydantic_names_the_field() -> None:
    data = json.dumps({"drinks": [{"name": "tea", "price_eur": -1}]}).encode()
    with pytest.raises(ValueError, match=r"it is not a Round: drinks\[0\]\.price_eur: Input should be greater than 0"):
        json_of(Round).deserialize("t", (), data)
