"""Of a tensor that is cut over ranks, a rank records its part, and the ranks that hold the same parts."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digest import EMPTY_PART
from chaos.agent.digests import Digests, Sampler, array_digest, array_of
from chaos.agent.record import Record
from chaos.agent.torch.shards import holders
from chaos.agent.training import Training
from tests.unit.agent.conftest import Events


class Placement:
    """Whether the ranks of one dimension of a mesh hold the same values."""

    def __init__(self, *, replicate: bool) -> None:
        self._replicate = replicate

    def is_replicate(self) -> bool:
        return self._replicate


CUT, SAME = Placement(replicate=False), Placement(replicate=True)


class Mesh:
    """A mesh of ranks, and the place of this rank in it."""

    def __init__(self, ranks: Any, *place: int) -> None:
        self.mesh = numpy.array(ranks)
        self._place = list(place)

    def get_coordinate(self) -> list[int]:
        return self._place


class Local:
    """A tensor of PyTorch in one process."""

    def __init__(self, *values: float) -> None:
        self.values = numpy.array(values, "float32")

    def detach(self) -> Local:
        return self

    def cpu(self) -> Local:
        return self

    def numpy(self) -> Any:
        return self.values


class Cut(Local):
    """A tensor that is cut over a mesh; anything but its local part would be a collective of all ranks."""

    def __init__(self, mesh: Mesh, *placements: Placement, values: tuple[float, ...] = (1, 2)) -> None:
        super().__init__(*values)
        self.device_mesh, self.placements = mesh, placements

    def numpy(self) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def reshape(self, *shape: int) -> Any:
        raise AssertionError("a collective")

    def to_local(self) -> Local:
        return Local(*self.values)


LINE = Mesh([0, 1, 2, 3], 2)
SQUARE = Mesh([[0, 1], [2, 3]], 1, 0)


@pytest.mark.parametrize(
    ("tensors", "ranks"),
    [
        ([Local(1)], None),
        ([Cut(LINE, SAME)], None),
        ([Cut(LINE, CUT), Local(1)], [2]),
        ([Cut(SQUARE, SAME, CUT)], [0, 2]),
        ([Cut(SQUARE, SAME, CUT), Cut(SQUARE, CUT, SAME)], [2]),
        ([Cut(SQUARE, CUT, CUT)], [2]),
    ],
)
def test_the_holders_of_the_same_parts_are_those_of_all_tensors(tensors: list[Any], ranks: list[int] | None) -> None:
    assert holders((str(number), tensor) for number, tensor in enumerate(tensors)) == ranks


def test_the_digest_and_the_sample_are_of_the_ranks_own_part(record: Record, events: Events) -> None:
    parameters = [("w", Cut(LINE, CUT, values=(3, 4))), ("b", Cut(LINE, CUT, values=()))]
    for sampler in (None, Sampler(1)):
        Digests(record, 1, sampler=sampler).write_initial(parameters)
    for event in events("initial"):
        expected = array_digest(numpy.array([3, 4], "float32"))
        assert event.data["parameters"] == {"w": expected, "b": EMPTY_PART}
    assert events("initial")[1].data["samples"]["w"].startswith("2 5 ")
    assert "b" not in events("initial")[1].data["samples"]


def test_a_part_that_a_collective_still_fetches_is_waited_for() -> None:
    class Pending(Local):
        def numpy(self) -> Any:
            raise AssertionError("not there yet")

        def wait(self) -> Local:
            return Local(5)

    class Fetched(Cut):
        def to_local(self) -> Local:
            return Pending()

    assert array_of(Fetched(LINE, CUT)).tolist() == [5]


def begin(record: Record, tensor: Any, **options: Any) -> None:
    Training(record, Barriers(record, None, []), Digests(record, 0)).begin(0, [("w", tensor)], **options)


def test_a_training_with_a_cut_state_says_so_and_any_other_does_not(record: Record, events: Events) -> None:
    begin(record, Local(1))
    begin(record, Cut(LINE, SAME))
    assert events("state.sharded") == []
    begin(record, Cut(SQUARE, SAME, CUT))
    begin(record, Local(1), own_slots=True)
    assert [event.data for event in events("state.sharded")] == [
        {"optimizer": False, "holders": [0, 2]},
        {"optimizer": True},
    ]
