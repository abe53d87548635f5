"""Digests of losses, gradients and parameters, which the checks compare bit for bit.

Digests are apart from the hooks because their cost grows with the model. An interval can thin them out, and every event
has the cost of its digests.

Where the job is not bit-exact, samples of parameters stand beside their digests, by which a tolerance can judge two
states. A sample is a line of text with bounded length: the number of values, their norm (2-norm), their mean, and some
values at places that a seed chooses. Two processes with one seed choose the same places of a parameter.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from chaos.agent.digest import EMPTY_PART, number_digest, tensor_digest
from chaos.agent.record import Record
from chaos.agent.torch.saves.taken import TakenStates
from chaos.agent.torch.shards import is_cut, local_part

EXACT = "exact"
"""The sample of integers: they count something, or are the state of a generator, and no noise changes them."""

MOST_VALUES = 16
"""Values of one parameter in a sample."""

MOST_VALUES_OF_A_STEP = 4096
"""Values of all parameters in the samples of one step. A parameter always has one."""

_LONGEST_REASON = 300
"""Characters of the reason why a tensor cannot be read."""

_BLOCK = 1 << 20
"""Values that are converted at once, so that the copy of a large parameter stays small."""


def array_digest(array: Any) -> str:
    """Return the digest of a NumPy array (duck-typed: the agent itself has no NumPy)."""
    return tensor_digest(str(array.dtype), array.shape, array.tobytes())


class Sampler:
    """Takes samples of parameters at places that ``seed`` chooses."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._places: dict[tuple[str, int, int], list[int]] = {}

    def samples(self, parameters: Iterable[tuple[str, Any]]) -> dict[str, str]:
        """Return a sample of each NumPy array, and of each plain number, by its name. Anything else has none.

        Integers have the sample EXACT.
        """
        named = list(parameters)
        values = max(1, min(MOST_VALUES, MOST_VALUES_OF_A_STEP // max(1, len(named))))
        taken = {}
        for name, value in named:
            if isinstance(value, int) or _is_of_integers(value):
                taken[name] = EXACT
                continue
            if isinstance(value, float):
                taken[name] = f"1 {abs(value):.9g} {value:.9g} {value:.9g}"
                continue
            try:
                taken[name] = self._sample(name, value.reshape(-1), values)
            except (AttributeError, TypeError, ValueError, OverflowError):
                continue
        return taken

    def _sample(self, name: str, flat: Any, values: int) -> str:
        count = int(flat.size)
        squares = total = 0.0
        for begin in range(0, count, _BLOCK):
            block = flat[begin : begin + _BLOCK].astype("float64")
            squares += float((block * block).sum())
            total += float(block.sum())
        chosen = [float(flat[place]) for place in self._chosen(name, count, values)]
        numbers = [squares**0.5, total / count if count else 0.0, *chosen]
        return " ".join([str(count), *(f"{number:.9g}" for number in numbers)])

    def _chosen(self, name: str, count: int, values: int) -> list[int]:
        key = (name, count, values)
        if key not in self._places:
            self._places[key] = places(self._seed, name, count, values)
        return self._places[key]


def _is_of_integers(value: Any) -> bool:
    """Return whether this is an array of integers, or of truth values."""
    return getattr(getattr(value, "dtype", None), "kind", "") in ("i", "u", "b")


def places(seed: int, name: str, count: int, values: int) -> list[int]:
    """Return at most ``values`` different places of a parameter with ``count`` values, in order.

    They come from a hash and not from ``random``, whose numbers depend on the release of Python.
    """
    if count <= values:
        return list(range(count))
    drawn = (
        int.from_bytes(blake2b(f"{seed}|{name}|{number}".encode(), digest_size=8).digest(), "big") % count
        for number in range(values)
    )
    return sorted(set(drawn))


class Digests:
    """A writer of the events ``initial`` and ``digest``.

    ``gradients`` is a flat array of the reduced gradients of the step. The code that reduces them may set it before the
    update; the next digest takes it. With a ``sampler`` each event has samples of the parameters beside their digests.
    ``taken`` finds the step of a state that is saved later.
    """

    def __init__(
        self, record: Record, interval: int, steps: Iterable[int] = (), *, sampler: Sampler | None = None
    ) -> None:
        self._record = record
        self._interval = interval
        self._steps = frozenset(steps)
        self._sampler = sampler
        self.gradients: Any = None
        self.costs_us: list[float] = []
        self.taken = TakenStates(digest_of)
        self._last: tuple[int, dict[str, str]] | None = None

    def is_due(self, step: int) -> bool:
        """Return whether this step has a digest."""
        return self._interval > 0 and (step % self._interval == 0 or step in self._steps)

    def write_initial(self, parameters: Iterable[tuple[str, Any]], frozen: Sequence[str] = ()) -> None:
        """Record the state before the first step; ``frozen`` are the names of weights that are not trained."""
        if self._interval > 0:
            self._record.write("initial", **self._state(parameters), **({"frozen": list(frozen)} if frozen else {}))

    def write(
        self,
        step: int,
        *,
        outputs: Any,
        batch: Any,
        parameters: Iterable[tuple[str, Any]],
        hyperparameters: Mapping[str, float] | None = None,
    ) -> None:
        """Record the state after the update of ``step``, if this step has a digest."""
        if not self.is_due(step):
            self.gradients = None
            return
        began = time.perf_counter_ns()
        loss = _loss_of(outputs)
        fields: dict[str, Any] = {
            "step": step,
            "loss": None if loss is None else loss.hex(),
            "batch": _batch_digest(batch),
            "gradients": self._gradient_digest(),
            **self._state(parameters),
        }
        if hyperparameters:
            fields["hyperparameters"] = dict(hyperparameters)
        self._last = step, fields["parameters"]
        self.taken.note(step, fields["parameters"])
        cost_us = (time.perf_counter_ns() - began) / 1000
        self.costs_us.append(cost_us)
        self._record.write("digest", cost_us=round(cost_us, 1), **fields)

    def changed_since(self, step: int, parameters: Iterable[tuple[str, Any]]) -> list[str]:
        """Return the names of the parameters that differ from their digests of this step; none if it had no digest."""
        if self._last is None or self._last[0] != step:
            return []
        return [name for name, digest in parameter_digests(parameters).items() if self._last[1].get(name) != digest]

    def _state(self, parameters: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """Return the fields of an event about the parameters, each of which is copied to the host once."""
        unreadable: dict[str, str] = {}
        if self._sampler is None:
            fields: dict[str, Any] = {"parameters": parameter_digests(parameters, unreadable)}
        else:
            values = []
            for name, parameter in parameters:
                if not isinstance(held := _held(parameter), Unreadable):
                    values.append((name, held))
                else:
                    unreadable[name] = held.reason
            fields = {"parameters": parameter_digests(values), "samples": self._sampler.samples(values)}
        return {**fields, "unreadable": unreadable} if unreadable else fields

    def _gradient_digest(self) -> dict[str, str] | None:
        gradients, self.gradients = self.gradients, None
        if gradients is None:
            return None
        norm = float((gradients.astype("float64") ** 2).sum() ** 0.5)
        return {"norm": norm.hex(), "digest": array_digest(gradients)}


class RawTensor:
    """A tensor of PyTorch whose type NumPy lacks (bfloat16, the 8-bit floats), in place of an array.

    ``dtype`` is PyTorch's name for the type. The digest is of the bytes as they are; samples are of the values as
    float32, which are computed only for them. Readers of checkpoint files have the same rule.
    """

    def __init__(self, tensor: Any) -> None:
        self.dtype = str(tensor.dtype).rpartition(".")[2]
        self.shape = tuple(tensor.shape)
        self.size = int(tensor.numel())
        self._tensor = tensor

    def tobytes(self) -> bytes:
        """Return the values' bytes, in the order of the values."""
        flat, module = self._tensor.contiguous().reshape(-1), sys.modules[type(self._tensor.dtype).__module__]
        raw: bytes = flat.view(module.uint8).numpy().tobytes()
        return raw

    def reshape(self, *shape: int) -> Any:
        """Return an array of the values, as float32."""
        return self._tensor.float().numpy().reshape(*shape)

    def mean(self) -> Any:
        """Return the mean of the values."""
        return self._tensor.float().numpy().mean()


def array_of(value: Any) -> Any:
    """Return the NumPy array of a tensor or of an array, or its :class:`RawTensor`; None for any other value.

    Tensors of MindSpore have ``asnumpy``, those of PyTorch ``detach``, ``cpu`` and ``numpy``. Of a tensor that is cut
    over ranks it is the part that this rank holds.
    """
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    if hasattr(value, "dtype") and hasattr(value, "tobytes"):
        return value
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        tensor = local_part(value.detach()).cpu()
        if hasattr(tensor, "resolve_conj"):  # marks of a tensor that NumPy does not know
            tensor = tensor.resolve_conj().resolve_neg()
        try:
            return tensor.numpy()
        except TypeError:
            return RawTensor(tensor)
    return None


def digest_of(value: Any) -> str | None:
    """Return the digest of a value, None where it cannot be read."""
    return parameter_digests([("", value)]).get("")


def parameter_digests(
    parameters: Iterable[tuple[str, Any]], unreadable: dict[str, str] | None = None
) -> dict[str, str]:
    """Return the digests by name. Tensors whose values cannot be read go to ``unreadable``, with the reason."""
    digests = {}
    for name, parameter in parameters:
        held = _held(parameter)
        digest = held if isinstance(held, Unreadable) else _digest_of(held)
        if isinstance(digest, str):
            digests[name] = digest
        elif unreadable is not None:
            unreadable[name] = digest.reason
    return digests


def _digest_of(held: Any) -> str | Unreadable:
    try:
        return _value_digest(held)
    except Exception as error:  # a type of values that nobody has seen here must not end the job
        return Unreadable(_reason(held, error))


def _value_digest(held: Any) -> str:
    """Return the digest of a value; it may be a plain number in the state of a job's own optimizer."""
    if isinstance(held, _EmptyPart):
        return EMPTY_PART
    return array_digest(held) if hasattr(held, "dtype") else number_digest(held)


class Unreadable:
    """A tensor whose values cannot be read, in place of an array: one of a class with rules of its own."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class _EmptyPart:
    """No values, in place of an array: a tensor that is cut over more ranks than it has rows."""


def _held(value: Any) -> Any:
    """Return what a rank holds of a parameter: an array, nothing, or the value itself where it is none."""
    try:
        if isinstance(value, _EmptyPart) or (array := array_of(value)) is None:
            return value
        return _EmptyPart() if is_cut(value) and array.size == 0 else array
    except Exception as error:  # a class of tensors of the job's own, which must not end the job
        return Unreadable(_reason(value, error))


def _reason(value: Any, error: Exception) -> str:
    return f"{type(value).__name__}: {type(error).__name__}: {error}"[:_LONGEST_REASON]


def _loss_of(outputs: Any) -> float | None:
    first = outputs[0] if isinstance(outputs, (tuple, list)) and outputs else outputs
    array = _held(first)
    if not hasattr(array, "dtype"):
        return float(first) if isinstance(first, (int, float)) else None
    return float(array.reshape(-1)[0]) if array.size == 1 else float(array.mean())


def _batch_digest(batch: Any) -> str | None:
    arrays = list(_arrays(batch))
    if not arrays or any(isinstance(array, Unreadable) for array in arrays):
        return None
    digests = [_digest_of(array) for array in arrays]
    if not all(isinstance(digest, str) for digest in digests):
        return None
    return tensor_digest("batch", (len(arrays),), "".join(map(str, digests)).encode())


def _arrays(batch: Any) -> Iterator[Any]:
    """Yield the arrays of a batch, however deep they stand in lists, tuples and dictionaries."""
    if isinstance(batch, Mapping):
        for name in sorted(batch, key=str):
            yield from _arrays(batch[name])
    elif isinstance(batch, (tuple, list)):
        for part in batch:
            yield from _arrays(part)
    elif hasattr(held := _held(batch), "dtype") or isinstance(held, (Unreadable, _EmptyPart)):
        yield held
