"""The shop's hour is the same every time, and its results follow from its events."""

from __future__ import annotations

import json
from collections import Counter

from tools.demo.shop import OPENS, TOPICS, Shop, closing_events, window_of


def test_a_seed_makes_the_same_hour_and_another_seed_another() -> None:
    assert Shop.open(1, 50, 50) == Shop.open(1, 50, 50)
    assert Shop.open(1, 50, 50) != Shop.open(2, 50, 50)


def test_results_follow_from_the_events() -> None:
    shop = Shop.open(3, 400, 300)
    values = {topic: [json.loads(event.value) for event in shop.events if event.topic == topic] for topic in TOPICS}
    cents = {order["order_id"]: order["cents"] for order in values["orders"]}
    placed = {order["order_id"]: order["at"] for order in values["orders"]}
    paid = [payment["order_id"] for payment in values["payments"]]
    assert shop.paid == {order_id: cents[order_id] for order_id in paid}
    assert 300 < len(paid) < 400
    by_window: Counter[str] = Counter()
    for order_id in paid:
        minute = int(placed[order_id][14:16])
        by_window[f"09:{minute - minute % 5:02d}"] += cents[order_id]
    assert shop.revenue == by_window
    assert shop.views == Counter(view["page"] for view in values["page_views"])
    assert [event.at_s for event in shop.events] == sorted(event.at_s for event in shop.events)


def test_closing_events_are_long_after_the_hour() -> None:
    hours = [json.loads(event.value)["at"][11:13] for event in closing_events()]
    assert hours == ["15", "15", "15"]
    assert [event.topic for event in closing_events()] == list(TOPICS)
    assert (OPENS.hour, window_of(0), window_of(59 * 60)) == (9, "09:00", "09:55")
