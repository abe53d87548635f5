"""The same training with sliced weights: tensor parallelism and optimizer shards, written by hand.

Written as for an Ascend machine; nothing in it knows of a rehearsal. Ranks stand in a matrix of data by model, the
model dimension fastest. The layers come in pairs, the first one sliced by columns and the second by rows, so that one
sum over the model group follows each pair; the last layer is whole on every rank. With --optimizer-shards N each rank
keeps the N-th part of the rows of its slices, and of their momentum, and gathers the others before it computes.

Where semi-automatic parallelism would give MindSpore's fault tolerance the ranks with the same slices, this job
provides them itself: ``parameter_layout_dict`` of the training network, and ``group_info.pb`` beside each rank's
checkpoints, from the members of its communication groups.
"""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import HeUniform, Uniform, initializer
from mindspore.communication import create_group, get_group_size, get_process_group_ranks, get_rank, init
from mindspore.train import CheckpointConfig, LossMonitor, Model, ModelCheckpoint, TrainFaultTolerance
from mindspore.utils import _tft_handler
from mnist import LastStep, argument_parser, create_dataset  # type: ignore[import-not-found]
from slice_files import GROUP_INFO, find_slice, write_group_info  # type: ignore[import-not-found]


@dataclass(frozen=True)
class Mesh:
    """This rank's place in the matrix, and its communication groups.

    ``model_group`` holds the ranks that share one batch, ``shard_group`` those that share one copy of the optimizer
    state, ``replica_group`` those that hold the same slices and optimizer state.
    """

    data_size: int
    model_size: int
    shards: int
    data: int
    model: int
    model_group: str
    shard_group: str
    replica_group: str


def create_mesh(model_size: int, shards: int) -> Mesh:
    ranks, rank = get_group_size(), get_rank()
    data_size = ranks // model_size
    data, model = divmod(rank, model_size)
    first = data - data % shards
    names = (f"model-{data}", f"shard-{model}-{first}", f"replica-{model}-{data % shards}")
    create_group(names[0], [data * model_size + other for other in range(model_size)])
    create_group(names[1], [other * model_size + model for other in range(first, first + shards)])
    create_group(names[2], [other * model_size + model for other in range(data % shards, data_size, shards)])
    return Mesh(data_size, model_size, shards, data, model, *names)


class SumOverGroup(nn.Cell):  # type: ignore[misc]
    """Sums partial results; the backward pass returns the gradient of each part."""

    def __init__(self, group: str) -> None:
        super().__init__()
        self.all_reduce = ops.AllReduce(group=group)

    def construct(self, x: Tensor) -> Tensor:
        return self.all_reduce(x)

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        del x, out
        return (dout,)


class CopyToGroup(nn.Cell):  # type: ignore[misc]
    """Hands the same input to every slice; the backward pass returns the sum of their gradients."""

    def __init__(self, group: str) -> None:
        super().__init__()
        self.all_reduce = ops.AllReduce(group=group)

    def construct(self, x: Tensor) -> Tensor:
        return x.copy()

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        del x, out
        return (self.all_reduce(dout),)


class GatherShards(nn.Cell):  # type: ignore[misc]
    """Puts the rows of all shards together; each shard gets the sum of the gradients of its rows."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__()
        self.all_reduce = ops.AllReduce(group=mesh.shard_group)
        self.shards = mesh.shards
        self.own = mesh.data % mesh.shards

    def construct(self, shard: Tensor) -> Tensor:
        parts = [ops.zeros_like(shard)] * self.shards
        parts[self.own] = shard
        return self.all_reduce(ops.concat(parts, axis=0))

    def bprop(self, shard: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        del out
        rows = shard.shape[0]
        return (self.all_reduce(dout)[self.own * rows : (self.own + 1) * rows],)


class Slice(nn.Cell):  # type: ignore[misc]
    """This rank's part of a weight. ``axis`` is the one that the model dimension slices, None for none."""

    def __init__(self, mesh: Mesh, name: str, init: Any, shape: list[int], axis: int | None) -> None:
        super().__init__()
        value = initializer(init, shape).init_data().asnumpy()
        if axis is not None:
            value = numpy.split(value, mesh.model_size, axis)[mesh.model]
        if mesh.shards > 1:
            value = numpy.split(value, mesh.shards, 0)[mesh.data % mesh.shards]
        self.param = Parameter(Tensor(value.copy()), name=name)
        self.gather = GatherShards(mesh) if mesh.shards > 1 else nn.Identity()
        # Device matrix and tensor map (dimensions counted from the right), as the graph compiler writes them.
        tensor_map = [0 if place == axis else -1 for place in range(len(shape))]
        group = mesh.shard_group if mesh.shards > 1 else ""
        self.layout = [[mesh.data_size, mesh.model_size], tensor_map, list(value.shape), 0, True, group]

    def construct(self) -> Tensor:
        return self.gather(self.param)


class SlicedDense(nn.Cell):  # type: ignore[misc]
    """A dense layer that is sliced by its columns (``axis`` 1), by its rows (0), or not at all (None)."""

    def __init__(self, mesh: Mesh, inputs: int, outputs: int, axis: int | None, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = Slice(mesh, "weight", HeUniform(math.sqrt(5)), [inputs, outputs], axis)
        bound = 1 / math.sqrt(inputs)
        self.bias = Slice(mesh, "bias", Uniform(bound), [outputs], 0 if axis == 1 else None) if bias else None
        self.matmul = ops.MatMul()
        self.sum = SumOverGroup(mesh.model_group) if axis == 0 else nn.Identity()

    def construct(self, x: Tensor) -> Tensor:
        x = self.sum(self.matmul(x, self.weight()))
        return x if self.bias is None else x + self.bias()


class Network(nn.Cell):  # type: ignore[misc]
    """Five layers with ReLU between them."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.layer1 = SlicedDense(mesh, 28 * 28, 128, 1, bias=False)
        self.layer2 = SlicedDense(mesh, 128, 256, 0)
        self.copy = CopyToGroup(mesh.model_group)
        self.layer3 = SlicedDense(mesh, 256, 256, 1)
        self.layer4 = SlicedDense(mesh, 256, 128, 0)
        self.layer5 = SlicedDense(mesh, 128, 10, None)
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        x = self.relu(self.layer1(self.flatten(x)))
        x = self.relu(self.layer2(x))
        x = self.relu(self.layer3(self.copy(x)))
        x = self.relu(self.layer4(x))
        return self.layer5(x)

    def layouts(self) -> dict[str, list[Any]]:
        """Return the layout of every weight, by its name."""
        return {cell.param.name: cell.layout for _, cell in self.cells_and_names() if isinstance(cell, Slice)}


class TrainStep(nn.TrainOneStepCell):  # type: ignore[misc]
    """One step, with gradients averaged over the data dimension: replicas here, shards when they were gathered."""

    def __init__(self, network: nn.Cell, optimizer: nn.Optimizer, mesh: Mesh) -> None:
        super().__init__(network, optimizer)
        self.reducer_flag = True
        self.grad_reducer = nn.DistributedGradReducer(
            optimizer.parameters, True, mesh.data_size, group=mesh.replica_group
        )


def read_arguments() -> argparse.Namespace:
    parser: argparse.ArgumentParser = argument_parser()
    parser.add_argument("--model-parallel", type=int, default=1)
    parser.add_argument("--optimizer-shards", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments()
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=arguments.device == "CPU")
    ms.set_device(arguments.device)
    if "ARF:1" in os.getenv("MS_ENABLE_TFT", ""):
        _tft_handler.init(config=None)
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.HYBRID_PARALLEL, gradients_mean=True)
    ms.set_seed(arguments.seed)

    mesh = create_mesh(arguments.model_parallel, arguments.optimizer_shards)
    network = Network(mesh)
    dataset = create_dataset(arguments, mesh.data_size, mesh.data)
    rates = [0.02 * (1 - step / (2 * arguments.steps)) for step in range(arguments.steps)]
    optimizer_class = TrainFaultTolerance.get_optimizer_wrapper(nn.Momentum)
    optimizer = optimizer_class(network.trainable_params(), learning_rate=rates, momentum=0.9)
    train_step = TrainStep(nn.WithLossCell(network, nn.CrossEntropyLoss()), optimizer, mesh)
    train_step.parameter_layout_dict = network.layouts()
    train_step.set_train()
    model = Model(train_step)

    replicas = get_process_group_ranks(mesh.replica_group)
    directory = os.path.join(arguments.output, f"rank_{get_rank()}")
    initial_epoch, initial_step = 0, 0
    checkpoint = None
    if arguments.is_recover or arguments.go_on:
        checkpoint = find_slice(arguments.output, get_rank(), get_group_size(), replicas)
    if arguments.is_recover and checkpoint is None:
        raise FileNotFoundError(
            f"no step in {arguments.output} has a file for every rank: neither its own nor one of a rank that "
            f"{GROUP_INFO} names"
        )
    if checkpoint is not None:
        saved = ms.load_checkpoint(checkpoint)
        ms.load_param_into_net(train_step, saved)
        initial_step = int(saved["global_step"].asnumpy().reshape(-1)[0])
        initial_epoch = initial_step // dataset.get_dataset_size()
        dataset.set_init_step(initial_step)

    write_group_info(directory, replicas)
    callbacks = [LossMonitor(1), LastStep(arguments.steps, optimizer)]
    if any(f"{name}:1" in os.getenv("MS_ENABLE_TFT", "") for name in ("TTP", "UCE", "HCCE", "ARF", "TSP")):
        callbacks.append(TrainFaultTolerance(arguments.output, initial_step=initial_step))
    if arguments.checkpoint_interval:
        configuration = CheckpointConfig(
            save_checkpoint_steps=arguments.checkpoint_interval, keep_checkpoint_max=10, integrated_save=False
        )
        callbacks.append(ModelCheckpoint("sliced", directory, configuration))
    epochs = math.ceil(arguments.steps / dataset.get_dataset_size())
    model.train(epochs, dataset, callbacks=callbacks, dataset_sink_mode=False, initial_epoch=initial_epoch)


if __name__ == "__main__":
    main()
