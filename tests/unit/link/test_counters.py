"""Sums and maxima."""

from ottla.link import LinkCounters


def test_sums_and_maxima() -> None:
    counters = LinkCounters()
    for latency_s in (0.5, 2.0, 1.0):
        counters.sent(100)
        counters.received(40)
        counters.answered(latency_s, 3)
    for throttle_ms in (10, 30, 20):
        counters.throttled(throttle_ms)
    assert (counters.requests, counters.sent_bytes, counters.received_bytes) == (3, 300, 120)
    assert (counters.answers, counters.latency_s_sum, counters.latency_s_max) == (3, 3.5, 2.0)
    assert (counters.throttled_answers, counters.throttle_ms_sum, counters.throttle_ms_max) == (3, 60, 30)
    assert "latency_s_max=2.0" in repr(counters)
