"""All installed readers: those of this package in their order, then those of other packages."""

from __future__ import annotations

from datetime import tzinfo

from chaos.base.registry import registry
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.reader import built_in_readers


def registered_readers(tz: tzinfo | None = None) -> list[LogReader]:
    """Return every reader, for :func:`chaos.observe.logs.reader.read_log`.

    Readers of this package come first, so that no other can take over their logs. Raises the errors of
    :func:`other_readers`.
    """
    return [*built_in_readers(tz), *other_readers(tz)]


def other_readers(tz: tzinfo | None = None) -> list[LogReader]:
    """Return the readers of other packages. They are called with ``tz``, like those of this package.

    Raises chaos.base.registry.RegistryError if one cannot be loaded, or is no LogReader.
    """
    known = {reader.name for reader in built_in_readers(tz)}
    return [_reader(name, tz) for name in registry("readers").names() if name not in known]


def _reader(name: str, tz: tzinfo | None) -> LogReader:
    members = registry("readers")
    reader = members.load(name)(tz)
    if not isinstance(reader, LogReader):
        raise members.misfit(name, "chaos.observe.logs.log_reader.LogReader")
    return reader
