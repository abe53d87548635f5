"""The ways in which a collective of a rehearsal ends without its result."""


class CommunicationAborted(RuntimeError):
    """The collective was stopped by an order."""


class CommunicationTimeout(RuntimeError):
    """A collective or the joining of ranks exceeded its limit. The text names the ranks that did not answer."""
