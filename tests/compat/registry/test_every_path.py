"""Every path, error code, level and mode of the REST API, by the stories of `tests/support/cases/registry_requests.py`."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.cases.registry_requests import CONTENT_TYPE, STORIES, Story, asked, compatibility_stories, mismatch, named

from ottla.testing import Broker


@pytest.fixture(scope="module")
def registry_url() -> Iterator[str]:
    with Broker() as broker:
        yield broker.schema_registry_url


def told(url: str, story: Story, subject: str) -> None:
    kept: dict[str, Any] = {}
    for number, step in enumerate(story.steps, 1):
        status, answer, kind = asked(url, step, subject, kept)
        where = f"step {number} of {story.name}: {step.method} {step.path}"
        assert status == step.status, (where, answer)
        assert status == 204 or kind == CONTENT_TYPE, where
        assert not (different := mismatch(named(step.answer, subject), answer, kept)), f"{where}: {different}"
        if step.keep:
            kept[step.keep] = answer


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_story(registry_url: str, story: Story) -> None:
    told(registry_url, story, f"t-{story.name}")


@pytest.mark.parametrize("story", compatibility_stories(), ids=lambda story: story.name)
def test_every_level(registry_url: str, story: Story) -> None:
    told(registry_url, story, f"c-{story.name}")
