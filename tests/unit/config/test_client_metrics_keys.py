"""Regular expressions of client metrics subscriptions: bounded before they are compiled."""

import pytest

from ottla.config.client_metrics_keys import validate_client_metrics_settings
from ottla.config.values import InvalidConfig


@pytest.mark.parametrize(
    "expression", ["(" * 5000 + ")" * 5000, "(" * 400 + ")" * 400, "[" * 30, "a" * 1001, "(a{2}" * 60 + ")" * 60]
)
def test_an_expression_that_is_expensive_to_compile_is_refused(expression: str) -> None:
    with pytest.raises(InvalidConfig, match=r"client_id=.*use a simpler one|match is longer"):
        validate_client_metrics_settings({"match": f"client_id={expression}"})


def test_many_expressions_are_refused() -> None:
    entries = ",".join(f"client_id={'a' * 990}{number}" for number in range(5))
    with pytest.raises(InvalidConfig, match="match is longer than 4000 characters"):
        validate_client_metrics_settings({"match": entries})


def test_ordinary_expressions_are_accepted_and_invalid_ones_named() -> None:
    validate_client_metrics_settings({"match": "client_id=(app-[0-9]{1.3}|(web|job)\\(x\\)).*,client_source_port=[0-9]+"})
    with pytest.raises(InvalidConfig, match="whose regular expression is invalid: missing"):
        validate_client_metrics_settings({"match": "client_id=(a"})
