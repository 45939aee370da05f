"""Every honoured setting is documented, and nothing else."""

import pytest

from ottla.config.client.build import Treatment, treatment_of
from ottla.config.client.kinds import KINDS, ClientKind
from ottla.config.client.words import words_of


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_exactly_the_honoured_settings_are_documented(kind: ClientKind) -> None:
    honoured = {name for name in kind.table if treatment_of(name)[0] is Treatment.HONOURED}
    words = words_of(kind.name)
    assert honoured - words.keys() == set()
    assert {name for name in words if name in kind.table} == honoured


def test_words_are_of_settings_that_exist_and_are_sentences() -> None:
    names = {name for kind in KINDS for name in kind.table}
    for kind in KINDS:
        for name, words in words_of(kind.name).items():
            assert name in names
            assert words.endswith("."), name
            assert len(words) > 15, name
