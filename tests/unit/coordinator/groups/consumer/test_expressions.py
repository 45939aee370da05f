"""Regular expressions: what they may cost to compile, and which are refused."""

import time

import pytest

from ottla.coordinator.groups.consumer import expressions
from ottla.coordinator.groups.consumer.expressions import KEPT, PRICE_MAX, compiled
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("orders-.*", "orders-eu"),
        (r"(?i)Orders\.(eu|us)\.v\d+", "orders.EU.v12"),
        (r"\p{L}+-\p{N}*", "orders-7"),
        ("[a-zA-Z0-9._-]{1,249}", "t" * 249),
        ("|".join(f"company.team-{number}" for number in range(1000)), "company.team-999"),
        (".*", "x"),
    ],
)
def test_ordinary_expressions_match(expression: str, name: str) -> None:
    assert compiled(expression).fullmatch(name)


@pytest.mark.parametrize(
    "expression",
    [
        r"\p{L}" * 400,
        r"(?i)\p{L}" * 60,
        r"[^\p{L}]" * 300,
        r"(\p{L}{20}){20}",
        "a{0,1000}" * 3000,
        "." * (PRICE_MAX + 1),
        "(?i)" + "k" * 30_000,
    ],
)
def test_expensive_expressions_are_refused_at_little_cost(expression: str) -> None:
    begun_s = time.process_time()
    with pytest.raises(KafkaError, match="too expensive to compile") as refused:
        compiled(expression)
    assert time.process_time() - begun_s < 0.2, "0.03 s; without the bound 0.3 to 0.9 s"
    assert refused.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(str(refused.value)) < 1000


def test_refusals_are_kept_like_expressions_and_both_are_bounded() -> None:
    expressions._compiled.cache_clear()
    for _ in range(2):
        with pytest.raises(KafkaError):
            compiled("(")
    assert expressions._compiled.cache_info().hits == 1
    for number in range(KEPT + 50):
        compiled(f"t-{number}")
    assert expressions._compiled.cache_info().currsize == KEPT


def test_expressions_are_compiled_without_captures() -> None:
    """Captures make hostile expressions hundreds of times as expensive."""
    assert compiled("(a|t|.)*(a?){900}a{0,900}").fullmatch("t" + "a" * 240).groups() == ()
