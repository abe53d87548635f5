"""What a kind of fault does to the job: one object, which the plan and the checks ask what they want to know.

A kind whose effect is not here declares an object of its own, with the fields that it needs. Its family lists that
(``effects`` of :class:`chaos.faults.family.Family`), so that a plan is read again without the code that acts. What a
kind does to the process, the node and the card of a rank is :class:`chaos.plan.effect.Effect`.
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
"""Class of error of a device that has lost memory. MindSpore tells such errors by their text."""

SPARED_MEMORY_ERROR = "memory error without loss"
"""Class of a memory error in which no memory that is needed was lost."""

UPDATE_MEMORY_ERROR = "memory error in the optimizer's update"
"""Class of a memory error that comes while the state is written: no mechanism can repair it online."""

COMMUNICATION_ERROR = "communication error"
"""Class of error of a device that cannot reach the others."""

UNKNOWN_ERROR = "unknown error"
"""Class of an exception that MindSpore's wrapper round the training has no repair for. It reports RS_UNKNOWN to the
SDK (``_handle_exception_info`` in train/model.py of MindSpore 2.10), so the rank counts as lost."""

ABNORMAL_RESULT = "abnormal result"
"""What a global norm over its threshold is taken for: MindSpore itself raises an error then."""


@dataclass(frozen=True, kw_only=True)
class SpoiltSaves:
    """How nothing is finished that is saved from then on.

    Args:
        done: what has been done to the storage, in words that follow "has".
        errors: what the error of a save may say.
        own_only: the saves of its own ranks alone are spoilt, not those of all.
        leaves_names: directories can be made and files renamed all the same: there is only no room for content.
    """

    done: str
    errors: tuple[str, ...]
    own_only: bool = False
    leaves_names: bool = False


@dataclass(frozen=True)
class JobEffect:
    """Nothing by default: the job goes on as if nothing had happened, more slowly at most.

    Args:
        name: the word for it, in plan.json and in texts.
        ends: the processes of its ranks end.
        suspends: they fall silent while they live, stopped or cut off, and are taken for gone.
        hangs: they live and can be reached, and their training does not go on.
        raises: the class of the error that is raised in them while they live on.
        loses_memory: that error says that memory in use was lost, so a repair copies the state of a replica.
        spares_memory: that error says that memory has failed which held nothing that is needed.
        loses_track: what its ranks have done before that error is not known, so that only a new process mends them.
        tells_time: that error tells when it came; the family makes another one of it by that time.
        asks_to_end: a signal asks the processes to end; the family makes an end of it, or nothing.
        pauses: all ranks are held back for a while, as a cluster's manager orders it.
        spoils_saves: how nothing is finished that is saved from then on.
        damages: what of the newest file that its ranks have saved is another then: its content, its name, the record
            that says which one is the last; or all files of theirs are gone.
        alters: what is computed wrongly, with no error: the norm of the gradients, or some value.
        noticed_as: what a mechanism that watches the training takes it for, where it raises no error.
    """

    name: str
    ends: bool = False
    suspends: bool = False
    hangs: bool = False
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
        """Whether its ranks answer no more. One that reports an error still runs its other threads."""
        return self.ends or self.suspends

    @property
    def stops_training(self) -> bool:
        """Whether its ranks train no further, unless something repairs them."""
        return self.silences or self.hangs or self.raises is not None

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
        """The word by which a mechanism says that it answers it while every process lives on."""
        return self.noticed_as if self.raises is None else self.raises

    @property
    def of_memory(self) -> bool:
        """Whether a device says which memory has failed, so that it can be asked to clean up."""
        return self.loses_memory or self.spares_memory

    @property
    def changes_file(self) -> bool:
        """Whether the newest file that its ranks have saved stays, with another content or another name."""
        return self.damages in ("content", "name")

    @property
    def takes_saved(self) -> bool:
        """Whether what its ranks have saved is no longer there as they have saved it."""
        return self.changes_file or self.damages == "files"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """In a plan that is read it is its name."""
        from pydantic_core import core_schema

        del source, handler
        return core_schema.no_info_after_validator_function(read, core_schema.str_schema())


NONE = JobEffect("none")

DEATH = JobEffect("death", ends=True)

SUSPENSION = JobEffect("suspension", suspends=True)

HANG = JobEffect("hang", hangs=True)

MEMORY = JobEffect("memory error", raises=MEMORY_ERROR, loses_memory=True)

TIMED = JobEffect("timed memory error", raises=MEMORY_ERROR, tells_time=True)

LOW_LEVEL = JobEffect("memory error without loss", raises=SPARED_MEMORY_ERROR, spares_memory=True)

IN_UPDATE = JobEffect("memory error in the optimizer's update", raises=UPDATE_MEMORY_ERROR, loses_track=True)

COMMUNICATION = JobEffect("communication error", raises=COMMUNICATION_ERROR)

UNKNOWN = JobEffect("unknown error", raises=UNKNOWN_ERROR, loses_track=True)

TERMINATION = JobEffect("termination", asks_to_end=True)
"""None where the SDK's processor has a handler for the signal, else a death."""

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
    *(DEATH, SUSPENSION, HANG, MEMORY, TIMED, COMMUNICATION, UNKNOWN, TERMINATION),
    *(STORAGE_FULL, STORAGE_READ_ONLY, STORAGE_ERROR, STORAGE_GONE, STORAGE_DENIED, VOLUME_GONE),
    *(PAUSE, LOST_FILES, DAMAGED, RENAMED, RECORD, ABNORMAL, SILENT, NONE),
)
"""Effects that a kind may have, without those of other packages."""

BUILT_IN: Mapping[str, JobEffect] = MappingProxyType(
    {effect.name: effect for effect in (*OF_KINDS, LOW_LEVEL, IN_UPDATE)}
)
"""These, and what plans make of them besides, by their names."""


def as_effect(effect: JobEffect | str) -> JobEffect:
    """Return the effect, where a built-in one may be given by its name; of any other word nothing is known."""
    return effect if isinstance(effect, JobEffect) else BUILT_IN.get(effect, JobEffect(effect))


def may_be_planned(effect: JobEffect) -> bool:
    """Return whether a kind may have it: it is a built-in one, or a family that is installed here lists it."""
    return effect in OF_KINDS or (is_known(effect) and effect.name not in BUILT_IN)


def is_known(effect: JobEffect) -> bool:
    """Return whether a plan that names it is read as it was written."""
    return _found(effect.name) == effect


def read(name: str) -> JobEffect:
    """Return the effect that a plan names. Raises ValueError where there is none of that name."""
    found = _found(name)
    if found is None:
        raise ValueError(f"there is no effect {name!r}, and no family that is installed here lists it")
    return found


def _found(name: str) -> JobEffect | None:
    """Return the effect of that name: a built-in one, or one that an installed family lists."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    listed = registry("effects")
    found: JobEffect | None = listed.load(name) if name in listed.points else None
    return found
