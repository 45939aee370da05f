"""Settings are made from an address, a mapping, keywords, or all of them."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.client import consumer_settings, producer_settings
from ottla.config.client.build import Treatment, treatment_of
from ottla.config.client.kinds import PRODUCER
from ottla.config.values import ConfigType, format_value
from ottla.errors import ConfigError


def test_the_three_ways_give_the_same() -> None:
    by_address = producer_settings("a:1", None, {"linger_ms": 7, "enable_idempotence": False, "compression_type": "zstd"})
    by_mapping = producer_settings(
        None, {"bootstrap.servers": "a:1", "linger.ms": "7", "enable.idempotence": "false", "compression.type": "zstd"}
    )
    by_keywords = producer_settings(
        None,
        None,
        {"bootstrap_servers": ["a:1"], "linger_ms": "7ms", "enable_idempotence": "False", "compression_type": "zstd"},
    )
    assert by_address == by_mapping == by_keywords
    assert (by_address.bootstrap_servers, by_address.linger_ms) == ((("a", 1),), 7)


def test_a_mapping_may_be_the_first_argument() -> None:
    assert producer_settings({"bootstrap.servers": "a:1"}) == producer_settings("a:1")


def test_a_keyword_may_have_kafkas_name() -> None:
    assert producer_settings(None, None, {"bootstrap.servers": "a:1"}) == producer_settings("a:1")


def test_no_address_is_an_error_with_an_example() -> None:
    with pytest.raises(ConfigError, match=r'bootstrap.servers is missing.*Consumer\("localhost:9092"\)'):
        consumer_settings()


NUMBERS = [
    name
    for name in PRODUCER.table
    if PRODUCER.table[name].type in (ConfigType.INT, ConfigType.LONG)
    and PRODUCER.table[name].rule is not None
    and treatment_of(name)[0] is Treatment.HONOURED
    and name != "max.in.flight.requests.per.connection"
]


@given(st.dictionaries(st.sampled_from(NUMBERS), st.integers(1, 9)))
def test_numbers_are_the_same_as_texts_and_as_python_values(numbers: dict[str, int]) -> None:
    relaxed = {
        "enable.idempotence": False,
        "delivery.timeout.ms": 60_000,
        "buffer.memory": 1 << 30,
        "metadata.max.idle.ms": 5_000,
    }
    values = {**numbers, **relaxed}
    as_numbers = producer_settings("a:1", values)
    as_texts = producer_settings("a:1", {name: format_value(value) for name, value in values.items()})
    as_keywords = producer_settings("a:1", None, {name.replace(".", "_"): value for name, value in values.items()})
    assert as_numbers == as_texts == as_keywords
    for name, value in values.items():
        assert getattr(as_numbers, name.replace(".", "_")) == value


def test_importing_the_settings_loads_nothing_heavy() -> None:
    code = "import sys, ottla.config.client; print(*(name for name in sys.argv[1:] if name in sys.modules))"
    heavy = [
        "dataclasses",
        "inspect",
        "difflib",
        "asyncio",
        "ssl",
        "socket",
        "importlib.resources",
        "logging",
        "ottla.config.broker",
    ]
    ran = subprocess.run([sys.executable, "-S", "-c", code, *heavy], capture_output=True, text=True, check=False)
    if ran.returncode:  # -S hides an editable installation: add its folder by hand
        import ottla

        root = ottla.__path__[0].rpartition("/")[0]
        ran = subprocess.run(
            [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {root!r}); {code}", *heavy],
            capture_output=True,
            text=True,
            check=True,
        )
    assert ran.stdout.split() == []
