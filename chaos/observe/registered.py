"""All readers that are installed: those of this package in their order, then those of other packages."""

from __future__ import annotations

from datetime import tzinfo

from chaos.observe.reader import LogReader, built_in_readers
from chaos.registry import registry


def registered_readers(tz: tzinfo | None = None) -> list[LogReader]:
    """Every reader, for :func:`chaos.observe.reader.read_log`.

    One of another package is called with ``tz``, as those of this package are. Those of this package come first, so
    that no other can take over their logs. Raises chaos.registry.RegistryError when one cannot be loaded.
    """
    readers = built_in_readers(tz)
    known = {reader.name for reader in readers}
    readers += [registry("readers").load(name)(tz) for name in registry("readers").names() if name not in known]
    return readers
