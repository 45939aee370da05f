"""The settings that a consumer's machines read: the real settings have them all, with Kafka's defaults."""

import pytest
from tests.support.machines.consumer_cluster import settings as settings_of_tests

from ottla.client_core.consumer.settings import READ_COMMITTED, FetchSettings, OffsetSettings, isolation_code
from ottla.config.client.build import consumer_settings
from ottla.errors import ConfigError


def names_of(protocol: type) -> set[str]:
    return {name for name, value in vars(protocol).items() if isinstance(value, property)}


@pytest.mark.parametrize(("level", "code"), [("read_uncommitted", 0), ("read_committed", 1)])
def test_an_isolation_level_has_its_number_on_the_wire(level: str, code: int) -> None:
    assert isolation_code(consumer_settings("a:1", {"isolation.level": level})) == code


def test_a_consumer_reads_uncommitted_unless_it_says_otherwise() -> None:
    chosen = consumer_settings("a:1")
    assert chosen.isolation_level != READ_COMMITTED
    assert isolation_code(chosen) == 0


def test_a_level_in_other_case_is_refused_not_read_as_uncommitted() -> None:
    with pytest.raises(ConfigError, match=r"isolation\.level"):
        consumer_settings("a:1", {"isolation.level": "READ_COMMITTED"})


@pytest.mark.parametrize("protocol", [FetchSettings, OffsetSettings])
def test_a_consumers_settings_have_everything_that_machines_read(protocol: type) -> None:
    names = names_of(protocol)
    assert "retry_backoff_ms" in names
    chosen, tested = consumer_settings("a:1"), settings_of_tests()
    # The machines' tests run with these values: they must be the defaults that a consumer has.
    assert {name: getattr(chosen, name) for name in names} == {name: getattr(tested, name) for name in names}
