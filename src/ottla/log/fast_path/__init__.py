"""The compiled fast path of appends. What it declines goes to `log/append.py`."""
