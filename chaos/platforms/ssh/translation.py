"""Paths of the harness's machine as they are on a host: every run has its own private directory there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BEFORE = r"(?<![\w./-])"
_AFTER = r"(?=/|$|[^\w.-])"


@dataclass(frozen=True)
class Translation:
    """``places`` maps absolute paths here to paths there; a longer path goes before a shorter."""

    places: Mapping[str, str]

    def text(self, text: str) -> str:
        """Return the text, with each path that begins with one of the places translated."""
        known = sorted(self.places, key=len, reverse=True)
        pattern = f"{_BEFORE}({'|'.join(map(re.escape, known))}){_AFTER}"
        return re.sub(pattern, lambda match: self.places[match[1]], text)

    def document(self, name: str, text: str) -> str:
        """Return the text of a file, translated; of a JSON file each of its strings."""
        return json.dumps(self._json(json.loads(text))) if name.endswith(".json") else self.text(text)

    def path_list(self, text: str) -> str:
        """Return the directories of a list (PYTHONPATH) that are on the host too."""
        parts = [part for part in text.split(os.pathsep) if part]
        return os.pathsep.join(there for part in parts if (there := self.text(part)) != part)

    def _json(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._json(part) for part in value]
        if isinstance(value, dict):
            return {key: self._json(part) for key, part in value.items()}
        return value
