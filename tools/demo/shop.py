"""An hour in a shop, from a seed: orders, payments and page views, and what a pipeline over them must find.

Event times are those of the shop's day, not of the demo: the hour is sent within seconds. After its end one more event of each
topic, hours later, moves the watermarks, so that all windows of the hour close.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

OPENS: Final = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
MINUTES: Final = 60
WINDOW_MINUTES: Final = 5
PAID_WITHIN_MINUTES: Final = 10
TOPICS: Final = ("orders", "payments", "page_views")
PRODUCTS: Final = {"espresso": 250, "cappuccino": 380, "tea": 310, "croissant": 290, "cake": 460}
CLOSING: Final = "closing"
"""The id of the events that only move the watermarks."""


@dataclass(frozen=True, order=True)
class Event:
    """One record to send: at second `at_s` of the hour, to `topic`."""

    at_s: float
    topic: str
    key: str
    value: str = field(compare=False)


@dataclass
class Shop:
    """The events of the hour in the order of their times, and the results that must come out."""

    events: list[Event] = field(default_factory=list)
    paid: dict[str, int] = field(default_factory=dict)
    """Order id → cents, of every order that was paid."""
    revenue: Counter[str] = field(default_factory=Counter)
    """Start of a window, as text → cents of the orders paid that were placed in it."""
    views: Counter[str] = field(default_factory=Counter)
    """Page → how often it was viewed."""

    @classmethod
    def open(cls, seed: int = 7, orders: int = 3_000, views: int = 6_000) -> Shop:
        """An hour with so many orders and page views; nine of ten orders are paid."""
        random, shop = Random(seed), cls()
        for number in range(orders):
            shop._order(random, f"o-{number:05d}")
        for _ in range(views):
            page = random.choice(["/", "/menu", *(f"/menu/{name}" for name in PRODUCTS)])
            shop._add("page_views", page, random.uniform(0, MINUTES * 60), {"page": page, "visitor": random.randrange(900)})
            shop.views[page] += 1
        shop.events.sort()
        return shop

    def _order(self, random: Random, order_id: str) -> None:
        at_s = random.triangular(0, MINUTES * 60 - 1, MINUTES * 25)  # most come at 09:25
        product = random.choice([*PRODUCTS])
        cents = PRODUCTS[product] * random.randint(1, 4)
        customer = f"c-{random.randrange(400):03d}"
        order = {"order_id": order_id, "customer": customer, "product": product, "cents": cents}
        self._add("orders", order_id, at_s, order)
        if random.random() < 0.9:
            paid_s = at_s + random.uniform(5, PAID_WITHIN_MINUTES * 60 - 30)
            self._add("payments", order_id, paid_s, {"order_id": order_id, "method": random.choice(["card", "cash", "app"])})
            self.paid[order_id] = cents
            self.revenue[window_of(at_s)] += cents

    def _add(self, topic: str, key: str, at_s: float, value: dict[str, Any]) -> None:
        self.events.append(Event(at_s, topic, key, as_json(at_s, value)))


def closing_events() -> list[Event]:
    """An event of each topic, hours after the shop has closed."""
    late_s = 6 * 3600.0
    values: dict[str, dict[str, Any]] = {
        "orders": {"order_id": CLOSING, "customer": "", "product": "", "cents": 0},
        "payments": {"order_id": CLOSING, "method": ""},
        "page_views": {"page": CLOSING, "visitor": 0},
    }
    return [Event(late_s, topic, CLOSING, as_json(late_s, value)) for topic, value in values.items()]


def as_json(at_s: float, value: dict[str, Any]) -> str:
    """A record's value: the fields with the event time."""
    at = OPENS + timedelta(seconds=round(at_s, 3))
    return json.dumps({**value, "at": at.isoformat(timespec="milliseconds")})


def window_of(at_s: float) -> str:
    """The start of the window that a second of the hour is in, as text."""
    start = OPENS + timedelta(minutes=int(at_s // 60) // WINDOW_MINUTES * WINDOW_MINUTES)
    return start.strftime("%H:%M")
