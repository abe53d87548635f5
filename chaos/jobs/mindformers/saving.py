"""The periodic checkpoints of a configuration of MindFormers: their callback, interval and layout.

Sources: MindFormers, the signature of CheckpointMonitor (1.3 to 2.1) for the defaults; trainer/base_trainer.py (1.7,
1.8, 2.1) and trainer/utils.py (2.1) for the choice of the layout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chaos.jobs.mindformers.configuration import Configuration, callbacks, is_off
from chaos.jobs.mindformers.typed import Typed
from chaos.jobs.mindformers.version import MONITOR, Release
from chaos.jobs.mindformers.yaml_file import Value
from chaos.scenario.completion import Origin

_NEW = {
    "save_checkpoint_steps": "save_interleaved_steps",
    "keep_checkpoint_max": "save_max",
    "directory": "save_path",
    "remove_redundancy": "save_remove_redundancy",
}
"""Keys of the callback that have another name in the section ``checkpoint``."""

_LEGACY = "use_legacy_format"


@dataclass(frozen=True)
class Saving:
    """The periodic checkpoints: their callback, their layout, and the section that counts for them."""

    configuration: Configuration
    callback: Value
    legacy: bool
    section: Value | None

    def value(self, key: str) -> Value | None:
        """Return a value of the new layout's section or, if it has none, of the callback."""
        for place, name in ((self.section, _NEW.get(key, key)), (self.callback, key)):
            value: Value | None = None if place is None else place.data.get(name)
            if value is not None and value.data is not None:
                return value
        return None

    def origin(self, key: str, default: object) -> Origin:
        """Return the place of a value, or a note that it is left out, with the effect."""
        value = self.value(key)
        return self.configuration.origin(value.key if value is not None else f"{MONITOR}.{key}", value, default)

    def interval(self, typed: Typed) -> tuple[int, Origin]:
        """Return the steps between checkpoints."""
        value = self.value("save_checkpoint_steps")
        steps = 1 if value is None else typed.checked("save_checkpoint_steps", value, int, 1)
        return steps, self.origin("save_checkpoint_steps", 1)

    def flag(self, typed: Typed, key: str) -> tuple[bool, Origin]:
        """Return a switch that is off by default."""
        value = self.value(key)
        return value is not None and value.data not in (False, None), self.origin(key, False)

    def kept(self, typed: Typed) -> int:
        """Return the number of kept checkpoints. MindSpore keeps one without a limit (CheckpointConfig, 2.10)."""
        value = self.value("keep_checkpoint_max")
        return 5 if value is None else typed.checked("keep_checkpoint_max", value, int, 5) or 1

    def text(self, typed: Typed, key: str, default: str) -> tuple[str, Origin]:
        """Return a text."""
        value = self.value(key)
        text = default if value is None else typed.checked(key, value, str, default)
        return text, self.origin(key, default)


def saving_of(typed: Typed) -> Saving | None:
    """Return how periodic checkpoints are saved, None if no callback saves them.

    Of two callbacks the last one counts; in the new layout of 2.1 the values of the first hold for all of them.
    """
    first = typed.release.layout == "section" and is_new_layout(typed.configuration, typed.release)
    monitor = monitor_of(typed.configuration, typed.release, first=first)
    if monitor is None:
        return None
    configuration, release = typed.configuration, typed.release
    typed.flag(_LEGACY)
    return Saving(configuration, monitor, not is_new_layout(configuration, release), _section(configuration, release))


def monitor_of(configuration: Configuration, release: Release, *, first: bool = False) -> Value | None:
    """Return the callback that saves periodic checkpoints."""
    monitor = None
    for value in callbacks(configuration):
        kind = value.data.get("type")
        if kind is not None and isinstance(kind.data, str) and kind.data in release.monitors:
            monitor = value
            if first:
                break
    return monitor


def is_new_layout(configuration: Configuration, release: Release) -> bool:
    """Return whether the job saves ``iteration_N`` directories.

    MindFormers 1.7 chooses the new layout by the callback's own key, 1.8 and later by the key at the top, which
    overrides the callback's, and 2.1 also by the section ``checkpoint``.
    """
    return _section(configuration, release) is not None or is_off(_choosing(configuration, release))


def saved_format(configuration: Configuration, release: Release) -> str:
    """Return ``ckpt`` or ``safetensors``.

    Models of the new kind (``use_legacy`` false or null) are saved as safetensors in any case (MindFormers 1.6 to 2.1,
    base_trainer.py).
    """
    if is_off(configuration.get("use_legacy")):
        return "safetensors"
    monitor = monitor_of(configuration, release)
    form = None if monitor is None else monitor.data.get("checkpoint_format")
    return "ckpt" if form is None or form.data is None else str(form.data)


def layout_origin(typed: Typed, saving: Saving) -> Origin:
    """Return the key that chooses the layout, and the layout."""
    words = "legacy" if saving.legacy else "new"
    if saving.section is not None:
        return typed.configuration.origin("checkpoint", replace(saving.section, data=words, text=words))
    value = _choosing(typed.configuration, typed.release)
    if value is not None:
        return _named(typed.configuration.origin(_LEGACY, value), words)
    passed_over = _passed_over(typed, saving)
    if passed_over is not None:
        key = passed_over.key
        return _named(typed.configuration.origin(key, passed_over), f"{words}: {typed.release.shown} does not go by it")
    return typed.configuration.origin(_LEGACY, None, words)


def _section(configuration: Configuration, release: Release) -> Value | None:
    """Return the section ``checkpoint`` if it counts: an empty section does not."""
    value = configuration.get("checkpoint") if release.layout == "section" else None
    return value if value is not None and value.data and isinstance(value.data, dict) else None


def _choosing(configuration: Configuration, release: Release) -> Value | None:
    """Return the key ``use_legacy_format`` that counts."""
    if release.layout == "callback":
        monitor = monitor_of(configuration, release)
        return None if monitor is None else monitor.data.get(_LEGACY)
    return None if release.layout == "never" else configuration.get(_LEGACY)


def _passed_over(typed: Typed, saving: Saving) -> Value | None:
    """Return the key that would choose the new layout in another version."""
    section = typed.configuration.get("checkpoint")
    if section is not None and section.data:
        return section
    return next(filter(is_off, (saving.callback.data.get(_LEGACY), typed.configuration.get(_LEGACY))), None)


def _named(origin: Origin, words: str) -> Origin:
    return replace(origin, value=f"{origin.value} ({words})")
