"""The comparison finds what is missing, doubled or wrong."""

from __future__ import annotations

from pathlib import Path

from tools.demo.report import Found, bars, differences, draw_png
from tools.demo.shop import CLOSING, Shop


def complete(shop: Shop) -> Found:
    found = Found()
    for order_id, cents in shop.paid.items():
        found.add_paid({"order_id": order_id, "cents": cents})
    for window, cents in shop.revenue.items():
        found.add_revenue({"window": window, "cents": cents})
    found.add_paid({"order_id": CLOSING, "cents": 0})
    found.add_revenue({"window": "15:00", "cents": 0})
    return found


def test_complete_results_have_no_differences() -> None:
    shop = Shop.open(1, 50, 10)
    assert differences(shop, complete(shop)) == []


def test_a_lost_a_doubled_and_a_wrong_result_are_told() -> None:
    shop = Shop.open(1, 50, 10)
    found = complete(shop)
    first, *_, last = sorted(found.paid)
    found.paid[first] += 1
    del found.paid[last]
    window = min(found.revenue)
    del found.revenue[window]
    said = differences(shop, found)
    assert said[0].startswith(f"1 paid orders are missing, for example {last[0]} with ")
    assert said[1].startswith(f"1 paid orders are there that should not be, or twice, for example {first[0]} with ")
    assert said[2].startswith(f"1 windows of revenue are missing, for example {window[0]} with ")


def test_bars_are_in_proportion() -> None:
    assert bars({"09:05": 50_00, "09:00": 100_00}, width=10) == ["09:00  ██████████ 100.00", "09:05  █████ 50.00"]


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    draw_png(tmp_path / "a.png", {"09:00": 100}, [(0.0, 0, 0), (1.0, 5, 3)], [0.5])
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
