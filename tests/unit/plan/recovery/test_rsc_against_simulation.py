"""How many steps a restart costs agrees with a brute-force model: ranks of a mesh that walk through their collectives.

The model knows the groups that reduce with each other in a step, and nothing of the plan: shards are gathered, slices
summed, gradients reduced. It finds every end that any order of the ranks can lead to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

STEPS, STRUCK = 4, 2

PLACES = ("step.begin", "forward", "gather", "sum", "allreduce.enter", "reduce", "optimizer.update", "step.end")
"""What a rank passes in a step; the collectives are those that a scenario cannot name."""


def last_ends(data: int, model: int, shards: int, lost: frozenset[int], phase: str) -> dict[int, set[int]]:
    """The last step that each rank can have ended at any moment after the lost ones have stopped at the phase."""
    size = data * model
    members = {}
    for rank in range(size):
        row, column = divmod(rank, model)
        first = row - row % shards
        members[rank, "sum"] = [row * model + other for other in range(model)]
        members[rank, "gather"] = [other * model + column for other in range(first, first + shards)]
        members[rank, "reduce"] = [other * model + column for other in range(row % shards, data, shards)]
    halt = (STRUCK - 1) * len(PLACES) + PLACES.index(phase)
    limit = STEPS * len(PLACES)

    def able(at: tuple[int, ...], rank: int) -> bool:
        """``at`` counts the places that a rank has reached; in a collective it waits for those of its group."""
        place = at[rank]
        if place == limit or (rank in lost and place == halt):
            return False
        here = PLACES[place % len(PLACES)]
        return all(at[other] >= place for other in members.get((rank, here), ()))

    # Whoever can go on can do so in any order and blocks nobody by it, so the furthest end is one, and the least ones
    # are those of ranks that are killed as soon as the lost have come to where they are lost.
    furthest = [0] * size
    while moving := [rank for rank in range(size) if able(tuple(furthest), rank)]:
        furthest[moving[0]] += 1
    assert all(furthest[rank] == halt for rank in lost)
    needed = [0] * size
    for rank in lost:
        needed[rank] = halt
    changed = True
    while changed:  # what must have been reached for the lost ranks to be where they are
        changed = False
        for rank in range(size):
            for place in range(needed[rank]):
                for other in members.get((rank, PLACES[place % len(PLACES)]), ()):
                    if needed[other] < place:
                        needed[other], changed = place, True
    ended = PLACES.index("step.end")
    steps = [[(at - ended + len(PLACES)) // len(PLACES) for at in ends] for ends in (needed, furthest)]
    return {rank: set(range(steps[0][rank], steps[1][rank] + 1)) for rank in range(size)}


@given(
    copies=st.integers(1, 3),
    model=st.sampled_from([1, 2, 4]),
    shards=st.sampled_from([1, 2]),
    phase=st.sampled_from(["step.begin", "forward", "allreduce.enter", "optimizer.update", "step.end"]),
    data=st.data(),
)
def test_as_many_steps_are_lost_as_any_order_of_the_ranks_can_cost(
    plan: Planner, copies: int, model: int, shards: int, phase: str, data: st.DataObject
) -> None:
    rows = copies * shards
    lost = data.draw(st.frozensets(st.integers(0, rows * model - 1), min_size=1, max_size=rows * model))
    ends = last_ends(rows, model, shards, lost, phase)
    parallel = {"data_parallel": rows, "model_parallel": model}
    if shards > 1:
        parallel |= {"enable_parallel_optimizer": True, "optimizer_weight_shard_size": shards}
    fault = {"kind": "kill", "target": {"ranks": tuple(lost)}, "trigger": {"step": STRUCK, "phase": phase}}
    job = {"steps": STEPS, "protection": ("RSC",), "agent": True}
    (recovery,) = plan(fault, cluster={"ranks": rows * model, "parallel": parallel}, job=job).response.recoveries
    assert recovery.trained_again is not None and recovery.step == 0
    most = {rank: max(possible) for rank, possible in ends.items()}
    for rank, step in most.items():
        assert step <= recovery.trained_again + (rank in recovery.one_more)
    assert {rank for rank, step in most.items() if step > recovery.trained_again} == set(recovery.one_more)
    assert max(min(possible) for possible in ends.values()) <= recovery.trained_again
    assert any(recovery.trained_again in possible for possible in ends.values())
