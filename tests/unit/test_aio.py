"""The asyncio clients by their public names."""

import pytest

from ottla import aio


def test_the_asyncio_clients_have_the_names_of_the_synchronous_ones() -> None:
    import ottla

    for name in aio.__all__:
        assert getattr(aio, name).__name__ == getattr(ottla, name).__name__ == name
        assert getattr(aio, name) is not getattr(ottla, name)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Broker"):
        _ = aio.Broker  # type: ignore[attr-defined]
