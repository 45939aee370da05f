"""Every path, error code, level and mode of the REST API, by the stories of `tests/support/cases/registry_requests.py`."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.support.cases.registry_requests import STORIES, Step, Story, compatibility_stories, mismatch, named, put_in

from ottla.testing import Broker

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


@pytest.fixture(scope="module")
def registry_url() -> Iterator[str]:
    with Broker() as broker:
        yield broker.schema_registry_url


def asked(url: str, step: Step, subject: str, kept: dict[str, Any]) -> tuple[int, Any, str]:
    """The status, the body and the type of an answer."""
    data = None if step.body is None else put_in(json.dumps(step.body), subject, kept).encode()
    request = Request(url + put_in(step.path, subject, kept), data, {"Content-Type": CONTENT_TYPE}, method=step.method)
    try:
        with urlopen(request, timeout=60) as response:
            text, status, kind = response.read(), response.status, response.headers["Content-Type"]
    except HTTPError as refusal:
        text, status, kind = refusal.read(), refusal.code, refusal.headers["Content-Type"]
    return status, json.loads(text) if text else None, kind


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
