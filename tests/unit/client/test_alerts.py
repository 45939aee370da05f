"""Alerts: when one begins, is repeated and ends, what receivers get, the file of rules (docs/lag-and-alerts.md)."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ottla.cli.alerts import read_settings
from ottla.client.alerts import (
    DEFAULT_RULES,
    METRICS,
    Alarms,
    AlertSettings,
    Rule,
    Series,
    parse_settings,
    payloads,
    prometheus_rules,
    rules_yaml,
)
from ottla.errors import ConfigError

RULE = Rule("Behind", "group_lag", ">", 100, for_s=10, groups="billing-*", summary="It is behind")
SETTINGS = AlertSettings((RULE,), repeat_s=100, labels=(("cluster", "prod"),))
PAGE = Path(__file__).parents[3] / "docs/lag-and-alerts.md"


def lag(**groups: float) -> dict[str, list[Series]]:
    return {"group_lag": [Series((("group", name.replace("_", "-")),), value) for name, value in groups.items()]}


class Scene:
    """Looks at times, and a receiver that takes all or nothing."""

    def __init__(self) -> None:
        self.alarms = Alarms(SETTINGS)
        self.takes = True

    def look(self, now_s: float, series: dict[str, list[Series]]) -> list[tuple[str, bool]]:
        """(group, whether it has ended) of what is sent."""
        due = self.alarms.see(series, now_s)
        if self.takes:
            self.alarms.sent(due, now_s)
        return [(dict(each.labels)["group"], each.ends_s is not None) for each in due]


def test_alert_begins_after_its_time_and_ends_once() -> None:
    scene = Scene()
    assert scene.look(0, lag(billing_a=500, other=500)) == []
    assert scene.look(9, lag(billing_a=500)) == []
    assert scene.look(10, lag(billing_a=500)) == [("billing-a", False)]
    assert scene.look(20, lag(billing_a=600)) == []
    assert scene.look(30, lag(billing_a=100)) == [("billing-a", True)]
    assert scene.look(40, lag(billing_a=0)) == []


def test_what_is_over_before_its_time_is_never_told() -> None:
    scene = Scene()
    assert [scene.look(now, lag(billing_a=lag_)) for now, lag_ in ((0, 500), (5, 0), (9, 500), (12, 500))] == [[], [], [], []]


def test_alert_is_repeated() -> None:
    scene = Scene()
    sent = [now for now in range(0, 300, 10) if scene.look(now, lag(billing_a=500))]
    assert sent == [10, 110, 210]


def test_receiver_that_is_away_gets_it_later_also_the_end() -> None:
    scene = Scene()
    scene.look(0, lag(billing_a=500))
    scene.takes = False
    assert scene.look(10, lag(billing_a=500)) == [("billing-a", False)]
    assert scene.look(20, lag(billing_a=500)) == [("billing-a", False)]
    scene.takes = True
    assert scene.look(30, lag(billing_a=500)) == [("billing-a", False)]
    scene.takes = False
    assert scene.look(40, lag(billing_a=0)) == [("billing-a", True)]
    scene.takes = True
    assert scene.look(50, lag(billing_a=0)) == [("billing-a", True)]
    assert scene.look(60, lag(billing_a=0)) == []


def test_metric_that_is_missing_ends_nothing() -> None:
    scene = Scene()
    scene.look(0, lag(billing_a=500))
    scene.look(10, lag(billing_a=500))
    assert scene.look(20, {}) == []
    assert scene.look(30, lag()) == [("billing-a", True)], "a group that is gone is not behind"


def test_messages() -> None:
    alarms = Alarms(SETTINGS)
    alarms.see(lag(billing_a=500), 1_700_000_000)
    (alert,) = alarms.see(lag(billing_a=500), 1_700_000_010)
    labels = {"alertname": "Behind", "severity": "warning", "cluster": "prod", "group": "billing-a"}
    annotations = {"summary": "It is behind", "description": "group billing-a: group_lag is 500 (group_lag > 100)"}
    (sent,) = payloads("alertmanager", [alert], until_s=1_700_000_100)
    assert sent == {
        "labels": labels,
        "annotations": annotations,
        "startsAt": "2023-11-14T22:13:20.000Z",
        "endsAt": "2023-11-14T22:15:00.000Z",
    }
    hook = payloads("webhook", [alert])
    assert (hook["version"], hook["status"], hook["commonLabels"]) == ("4", "firing", labels)
    ended = payloads("webhook", [alert._replace(ends_s=1_700_000_060)])
    assert (ended["status"], ended["alerts"][0]["status"]) == ("resolved", "resolved")
    assert ended["alerts"][0]["fingerprint"] == hook["alerts"][0]["fingerprint"]
    assert json.dumps(hook)


def test_default_rules_are_their_own_file() -> None:
    written = rules_yaml(AlertSettings())
    parsed = parse_settings(
        yaml.safe_load(written), "rules", lambda text: float(text.rstrip("sh")) * (3600 if "h" in text else 1)
    )
    assert parsed == AlertSettings()
    assert {each.metric for each in DEFAULT_RULES} < set(METRICS)


def test_prometheus_file_has_every_rule_that_the_pages_know() -> None:
    rules = [*DEFAULT_RULES, Rule("Quiet", "topic_idle_seconds", ">", 600, topics="orders*")]
    written = yaml.safe_load(prometheus_rules(AlertSettings(tuple(rules), labels=(("cluster", "prod"),))))
    ((group),) = written["groups"]
    found = {each["alert"]: each for each in group["rules"]}
    assert found.keys() == {each.name for each in rules} - {"GroupStatus", "ClusterUnreachable"}
    assert found["GroupLag"]["for"] == "60s"
    assert found["Quiet"]["expr"].endswith('{topic=~"orders.*"}[600s])) == 0')


def test_page_has_a_file_that_works(tmp_path: Path) -> None:
    (block,) = PAGE.read_text("utf-8").split("```yaml\n")[1:]
    file = tmp_path / "alerts.yaml"
    file.write_text(block.partition("```")[0])
    settings = read_settings(file)
    assert settings.webhook is not None
    assert settings.rules


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "write a mapping"),
        ({"rule": []}, "rule is not known"),
        ({"form": "mail"}, "form: 'mail'"),
        ({"every": "often"}, "every: 'often' is no duration"),
        ({"rules": [{"alert": "A"}]}, "rule 1: a rule needs alert, its name, and when"),
        ({"rules": [{"alert": "A", "when": "lag > 3"}]}, "METRIC OPERATOR NUMBER"),
        ({"rules": [{"alert": "A", "when": "group_lag > many"}]}, "'many' is no number"),
        ({"rules": [{"alert": "A", "when": "group_lag > 3", "of": 1}]}, "of is not known"),
    ],
)
def test_wrong_file_is_said(content: Any, said: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        parse_settings(content, "alerts.yaml", lambda text: None)
    assert said in str(wrong.value)
    assert str(wrong.value).startswith("alerts.yaml")
