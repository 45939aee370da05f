"""Errors of a run that are not bugs of the benchmark: shown as their text, without a traceback."""


class BenchFailed(Exception):
    """The run cannot continue."""


class BadOption(BenchFailed):
    """An invalid option; the text names it and the valid values."""


class LoadFailed(BenchFailed):
    """A load program ended with an error, or a server did not do what the load waits for; the text includes its output."""


class BadReply(BenchFailed):
    """A server answered a load with an error, so the load measured nothing."""


class AdminFailed(BenchFailed):
    """A server refused to create, alter or delete a topic, or did not do it in time."""
