"""How a collective of a rehearsal ends without its result."""


class CommunicationAborted(RuntimeError):
    """The collective was told to stop."""


class CommunicationTimeout(RuntimeError):
    """A collective or the joining of ranks outlasted its limit. Names the ranks that did not answer."""
