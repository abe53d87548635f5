"""The effect of a fault kind on the job: one object, which answers the questions of the plan and the checks.

A kind whose effect is not here declares an object of its own, with the fields that it needs. Its family lists the
object (``effects`` of :class:`chaos.faults.family.Family`), so that a plan can be read again without the code that
acts. The effect of a kind on the process, the node and the card of a rank is :class:`chaos.plan.effect.Effect`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from chaos.base.registry import registry

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

MEMORY_ERROR = "memory error"
"""Class of error of a device that has lost memory. MindSpore recognises such errors by their text."""

SPARED_MEMORY_ERROR = "memory error without loss"
"""Class of a memory error that lost no needed memory."""

UPDATE_MEMORY_ERROR = "memory error in the optimizer's update"
"""Class of a memory error that comes while the state is written: no mechanism can repair it online."""

COMMUNICATION_ERROR = "communication error"
"""Class of error of a device that cannot reach the others."""

UNKNOWN_ERROR = "unknown error"
"""Class of an exception that MindSpore's wrapper round the training has no repair for. It reports RS_UNKNOWN to the
SDK (``_handle_exception_info`` in train/model.py of MindSpore 2.10), so the rank counts as lost."""

ABNORMAL_RESULT = "abnormal result"
"""The meaning of a global norm over its threshold: MindSpore itself raises an error then."""


@dataclass(frozen=True, kw_only=True)
class SpoiltSaves:
    """How every save from then on stays unfinished.

    Args:
        done: the change to the storage, in words that follow "has".
        errors: possible texts of the error of a save.
        own_only: only the saves of its own ranks are spoilt.
        leaves_names: directories can still be made and files renamed: only the room for content is missing.
    """

    done: str
    errors: tuple[str, ...]
    own_only: bool = False
    leaves_names: bool = False


@dataclass(frozen=True)
class JobEffect:
    """The effect of a fault kind on the job. By default none: the job goes on, more slowly at most.

    Args:
        name: the word for it, in plan.json and in texts.
        ends: the processes of its ranks end.
        stalls: they may stand still for seconds before they end, so that their silence is noticed before their end.
        suspends: they fall silent while they live, stopped or cut off, and are taken for gone.
        hangs: they live and can be reached, and their training does not go on.
        strands: no rank is hit, and none can train on without the process that is.
        raises: the class of the error raised in them while they live on.
        loses_memory: the error says that memory in use was lost, so a repair copies the state of a replica.
        spares_memory: the error says that only memory without needed content has failed.
        loses_track: the work of its ranks before the error is not known, so only a new process mends them.
        tells_time: the error tells when it came; by that time the family turns it into another effect.
        asks_to_end: a signal asks the processes to end; the family turns it into an end, or into no effect.
        pauses: all ranks are held back for a while, by order of a cluster's manager.
        spoils_saves: how every save from then on stays unfinished.
        damages: the damage to the newest file that its ranks have saved: to its content, its name, or the record that
            names the last file; or the loss of all their files.
        alters: the value that is computed wrongly, with no error: the norm of the gradients, or another one.
        noticed_as: the class under which a mechanism that watches the training notices it, where it raises no error.
    """

    name: str
    ends: bool = False
    stalls: bool = False
    suspends: bool = False
    hangs: bool = False
    strands: bool = False
    raises: str | None = None
    loses_memory: bool = False
    spares_memory: bool = False
    loses_track: bool = False
    tells_time: bool = False
    asks_to_end: bool = False
    pauses: bool = False
    spoils_saves: SpoiltSaves | None = None
    damages: Literal["content", "name", "record", "files"] | None = None
    alters: Literal["norm", "value"] | None = None
    noticed_as: str | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def silences(self) -> bool:
        """Whether its ranks stop answering. A rank that reports an error still runs its other threads."""
        return self.ends or self.suspends

    @property
    def noticed_by_silence(self) -> bool:
        """Whether its ranks may stop answering while their connections are up."""
        return self.suspends or self.stalls

    @property
    def stops_training(self) -> bool:
        """Whether its ranks train no further, unless something repairs them."""
        return self.silences or self.hangs or self.strands or self.raises is not None

    @property
    def harmless(self) -> bool:
        """Whether it alone stops no training, so that no mechanism has to answer it."""
        changes = self.pauses or self.damages is not None or self.alters is not None
        return not (self.stops_training or self.asks_to_end or changes)

    @property
    def slows_at_most(self) -> bool:
        """Whether the job is made slower by it, and nothing else."""
        return self.harmless and self.spoils_saves is None

    @property
    def answered_as(self) -> str | None:
        """The word by which a mechanism declares that it answers this effect while every process lives on."""
        return self.noticed_as if self.raises is None else self.raises

    @property
    def of_memory(self) -> bool:
        """Whether a device names the failed memory, so that it can be asked to clean up."""
        return self.loses_memory or self.spares_memory

    @property
    def changes_file(self) -> bool:
        """Whether the newest file of its ranks stays, with another content or another name."""
        return self.damages in ("content", "name")

    @property
    def takes_saved(self) -> bool:
        """Whether the saved files of its ranks no longer exist as saved."""
        return self.changes_file or self.damages == "files"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate and serialise an effect by its name in a stored plan."""
        from pydantic_core import core_schema

        del source, handler
        return core_schema.no_info_after_validator_function(read, core_schema.str_schema())


NONE = JobEffect("none")

DEATH = JobEffect("death", ends=True)

SLOW_DEATH = JobEffect("death after a stall", ends=True, stalls=True)

SUSPENSION = JobEffect("suspension", suspends=True)

HANG = JobEffect("hang", hangs=True)

STRANDING = JobEffect("loss of the coordinator", strands=True)
"""The death of a process beside the ranks that brings them together (``JobTraits.coordinators``)."""

MEMORY = JobEffect("memory error", raises=MEMORY_ERROR, loses_memory=True)

TIMED = JobEffect("timed memory error", raises=MEMORY_ERROR, tells_time=True)

LOW_LEVEL = JobEffect("memory error without loss", raises=SPARED_MEMORY_ERROR, spares_memory=True)

IN_UPDATE = JobEffect("memory error in the optimizer's update", raises=UPDATE_MEMORY_ERROR, loses_track=True)

COMMUNICATION = JobEffect("communication error", raises=COMMUNICATION_ERROR)

UNKNOWN = JobEffect("unknown error", raises=UNKNOWN_ERROR, loses_track=True)

TERMINATION = JobEffect("termination", asks_to_end=True)
"""No effect where the SDK's processor has a handler for the signal, else a death."""

STORAGE_FULL = JobEffect(
    "storage full",
    spoils_saves=SpoiltSaves(
        done="taken the room on the storage", errors=("[Errno 28]", "No space left on device"), leaves_names=True
    ),
)

STORAGE_READ_ONLY = JobEffect(
    "storage read-only",
    spoils_saves=SpoiltSaves(done="made the storage read-only", errors=("[Errno 30]", "Read-only file system")),
)

STORAGE_ERROR = JobEffect(
    "storage error",
    spoils_saves=SpoiltSaves(
        done="made every access to the storage an error", errors=("[Errno 5]", "Input/output error")
    ),
)

STORAGE_GONE = JobEffect(
    "storage gone",
    spoils_saves=SpoiltSaves(done="taken the directory away", errors=("[Errno 2]", "No such file or directory")),
)

STORAGE_DENIED = JobEffect(
    "storage denied",
    spoils_saves=SpoiltSaves(
        done="taken the permission to write on the storage",
        errors=("[Errno 1]", "[Errno 13]", "Operation not permitted", "Permission denied"),
    ),
)

VOLUME_GONE = JobEffect(
    "volume gone",
    spoils_saves=SpoiltSaves(
        done="taken the volume from its node", errors=("[Errno 2]", "No such file or directory"), own_only=True
    ),
)

PAUSE = JobEffect("pause", pauses=True)

LOST_FILES = JobEffect("lost files", damages="files")

DAMAGED = JobEffect("damaged checkpoint", damages="content")

RENAMED = JobEffect("renamed checkpoint", damages="name")

RECORD = JobEffect("damaged record", damages="record")

ABNORMAL = JobEffect("abnormal result", alters="norm", noticed_as=ABNORMAL_RESULT)

SILENT = JobEffect("silent corruption", alters="value")

OF_KINDS = (
    *(DEATH, SLOW_DEATH, SUSPENSION, HANG, MEMORY, TIMED, COMMUNICATION, UNKNOWN, TERMINATION),
    *(STORAGE_FULL, STORAGE_READ_ONLY, STORAGE_ERROR, STORAGE_GONE, STORAGE_DENIED, VOLUME_GONE),
    *(PAUSE, LOST_FILES, DAMAGED, RENAMED, RECORD, ABNORMAL, SILENT, NONE),
)
"""Effects that a kind may have, without those of other packages."""

BUILT_IN: Mapping[str, JobEffect] = MappingProxyType(
    {effect.name: effect for effect in (*OF_KINDS, STRANDING, LOW_LEVEL, IN_UPDATE)}
)
"""The built-in effects, and the effects that plans derive from them, by their names."""


def as_effect(effect: JobEffect | str) -> JobEffect:
    """Return the effect; a built-in one may be given by its name. Nothing is known of any other word."""
    return effect if isinstance(effect, JobEffect) else BUILT_IN.get(effect, JobEffect(effect))


def may_be_planned(effect: JobEffect) -> bool:
    """Return whether a kind may have the effect: it is built in, or a family installed here lists it."""
    return effect in OF_KINDS or (is_known(effect) and effect.name not in BUILT_IN)


def is_known(effect: JobEffect) -> bool:
    """Return whether a plan that names the effect is read as it was written."""
    return _found(effect.name) == effect


def read(name: str) -> JobEffect:
    """Return the effect that a plan names. Raises ValueError for an unknown name."""
    effect = _found(name)
    if effect is None:
        raise ValueError(f"there is no effect {name!r}, and no installed family lists it")
    return effect


def _found(name: str) -> JobEffect | None:
    """Return the effect of this name: a built-in one, or one listed by an installed family."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    listed = registry("effects")
    effect: JobEffect | None = listed.load(name) if name in listed.points else None
    return effect
