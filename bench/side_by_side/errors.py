"""What goes wrong in a run without being a mistake of the benchmark's own: shown as its text, without a traceback."""


class BenchFailed(Exception):
    """The run cannot go on."""


class BadOption(BenchFailed):
    """An option that cannot be followed; the text says which and what it may be."""


class LoadFailed(BenchFailed):
    """A load program ended with an error, or a server did not do what the load waits for; the text has what was printed."""


class BadReply(BenchFailed):
    """A server answered a load with an error, so the load measured nothing."""


class AdminFailed(BenchFailed):
    """A server refused to make, change or delete a topic, or did not do it in time."""
