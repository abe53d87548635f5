"""The rehearsed job: the five-layer network of the power-off checkpoint document, scaled to fit two cores.

It is written as for an Ascend machine: nothing in it knows of a rehearsal. It differs from the document's sample:

1. layers of 128, 256, 256 and 128 in place of 512, 5120, 5120 and 512;
2. PyNative mode on the device named by --device, synchronous on a CPU (the document: graph mode on Ascend);
3. the sizes, steps and directories are arguments, and data is sharded over the ranks;
4. ``TrainFaultTolerance`` and its optimizer wrapper in place of ``OptTFTWrapper`` and ``TFTRegister``, which MindSpore
   deprecated (removed after 2.9);
5. Momentum and a falling learning rate in place of plain SGD, so that there is optimizer state to lose;
6. a resume searches for the newest finished end-of-life checkpoint, whose path the sample has typed in;
7. training ends after --steps steps, also in the middle of an epoch;
8. with ARF fault tolerance is initialized first, as MindSpore demands: a new process of a lost rank waits there;
9. with --continue, a job that is started again without a checkpoint to go on from searches for the newest readable
   periodic one;
10. where a job has ended without an end-of-life checkpoint, a resume searches for that periodic one too; with
    --crc-check checkpoints have a checksum, which is verified;
11. --graph compiles forward and backward, --asynchronous-saving writes periodic checkpoints in the background.
"""

from __future__ import annotations

import argparse
import glob
import math
import os
import re

import mindspore as ms
import mindspore.dataset as ds
from global_norm import (  # type: ignore[import-not-found]  # beside this script
    GlobalNormMonitor,
    newest_checkpoint,
    with_global_norm,
)
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import HeUniform, initializer
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import (
    Callback,
    CheckpointConfig,
    LossMonitor,
    Model,
    ModelCheckpoint,
    RunContext,
    TrainFaultTolerance,
)
from mindspore.utils import _tft_handler
from slice_files import stored_step  # type: ignore[import-not-found]  # beside this script


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Train a five-layer network with fault tolerance.")
    parser.add_argument("--device", default="Ascend")
    parser.add_argument("--data", required=True, help="directory with MNIST files")
    parser.add_argument("--output", required=True, help="directory for checkpoints")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--steps-per-epoch", type=int, required=True)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--checkpoint-interval", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--norm-threshold", type=float, default=0.0, help="global norm that calls for a rollback; 0: none"
    )
    parser.add_argument("--skip-data", type=int, default=0, choices=[1, 0], help="use_skip_data_by_global_norm")
    parser.add_argument("--is-recover", type=int, default=0, choices=[1, 0])
    parser.add_argument("--continue", dest="go_on", action="store_true", help="go on from a periodic checkpoint")
    parser.add_argument("--graph", type=int, default=0, choices=[1, 0], help="compile forward and backward")
    parser.add_argument("--asynchronous-saving", type=int, default=0, choices=[1, 0])
    parser.add_argument("--crc-check", type=int, default=0, choices=[1, 0], help="save and look at checksums")
    return parser


class MatMulCell(nn.Cell):  # type: ignore[misc]
    """A product with a bare parameter, as in the document's sample."""

    def __init__(self, shape: list[int]) -> None:
        super().__init__()
        self.param = Parameter(initializer(HeUniform(math.sqrt(5)), shape), name="param")
        self.matmul = ops.MatMul()

    def construct(self, x: Tensor) -> Tensor:
        return self.matmul(x, self.param)


class Network(nn.Cell):  # type: ignore[misc]
    """Five layers with ReLU between them."""

    def __init__(self) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.layer1 = MatMulCell([28 * 28, 128])
        self.relu1 = nn.ReLU()
        self.layer2 = nn.Dense(128, 256)
        self.relu2 = nn.ReLU()
        self.layer3 = nn.Dense(256, 256)
        self.relu3 = nn.ReLU()
        self.layer4 = nn.Dense(256, 128)
        self.relu4 = nn.ReLU()
        self.layer5 = nn.Dense(128, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.relu1(self.layer1(self.flatten(x)))
        x = self.relu2(self.layer2(x))
        x = self.relu3(self.layer3(x))
        x = self.relu4(self.layer4(x))
        return self.layer5(x)


class GraphStep(nn.TrainOneStepCell):  # type: ignore[misc]
    """One training step whose forward and backward part is compiled; gradients are reduced between two graphs."""

    def __init__(self, network: nn.Cell, loss: nn.Cell, optimizer: nn.Optimizer) -> None:
        super().__init__(nn.WithLossCell(network, loss), optimizer)
        self.gradients = ops.value_and_grad(self.network, None, self.weights)

    @ms.jit  # type: ignore[untyped-decorator]
    def forward_backward(self, image: Tensor, label: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        result: tuple[Tensor, tuple[Tensor, ...]] = self.gradients(image, label)
        return result

    def construct(self, image: Tensor, label: Tensor) -> Tensor:
        loss, gradients = self.forward_backward(image, label)
        self.optimizer(self.grad_reducer(gradients))
        return loss


class LastStep(Callback):  # type: ignore[misc]
    """Ends the training once the optimizer has done all its steps: a checkpoint or a rollback resets its counter."""

    def __init__(self, steps: int, optimizer: nn.Optimizer) -> None:
        super().__init__()
        self._steps = steps
        self._done = optimizer.global_step

    def on_train_step_end(self, run_context: RunContext) -> None:
        if int(self._done.asnumpy().reshape(-1)[0]) >= self._steps:
            run_context.request_stop()


def create_dataset(arguments: argparse.Namespace, shards: int, shard: int) -> ds.Dataset:
    dataset = ds.MnistDataset(
        arguments.data,
        num_samples=arguments.steps_per_epoch * arguments.batch_size,
        shuffle=False,
        num_shards=shards,
        shard_id=shard,
        num_parallel_workers=1,
    )
    transforms = [
        ds.vision.Rescale(1.0 / 255.0, 0),
        ds.vision.Normalize(mean=(0.1307,), std=(0.3081,)),
        ds.vision.HWC2CHW(),
    ]
    dataset = dataset.map(transforms, "image", num_parallel_workers=1)
    dataset = dataset.map(ds.transforms.TypeCast(ms.int32), "label", num_parallel_workers=1)
    return dataset.batch(arguments.batch_size, num_parallel_workers=1)


def find_checkpoint(output: str) -> str:
    """Return the newest finished (renamed) end-of-life checkpoint, of a rank of this rank's replica group.

    MindSpore 2.7 names the directory ``tft_…``, later versions ``ttp_…``. With data parallelism alone all ranks are one
    replica group, so any rank's file will do.
    """
    finished = {
        int(match[1]): directory
        for directory in glob.glob(os.path.join(output, "t[tf][pt]_saved_checkpoints-step_*"))
        if (match := re.search(r"step_(\d+)$", directory))
    }
    if not finished:
        raise FileNotFoundError(f"no finished end-of-life checkpoint in {output}")
    return sorted(glob.glob(os.path.join(finished[max(finished)], "rank_*", "*.ckpt")))[0]


def load_to_resume(output: str, crc_check: bool) -> tuple[dict[str, Parameter], int]:
    """Return the checkpoint of a job that has ended, and its step.

    It is an end-of-life checkpoint, else the newest periodic one. Raises FileNotFoundError where there is neither.
    """
    try:
        path = find_checkpoint(output)
    except FileNotFoundError:
        saved = load_newest_periodic(output, crc_check)
    else:
        saved = ms.load_checkpoint(path)
        return saved, int(saved["step_num"])
    if not saved:
        raise FileNotFoundError(f"no step in {output} has a file for every rank, its own or a replica's")
    return saved, steps_in(saved)


def load_newest_periodic(output: str, crc_check: bool = False) -> dict[str, Parameter]:
    """Return the newest readable periodic checkpoint, of a rank of this rank's replica group; empty if there is none.

    A job that has been started again counts its own steps in the names of its files, so the step is the optimizer's.
    Every rank chooses from the same files, and with data parallelism alone any rank's file will do.
    """
    paths = sorted(glob.glob(os.path.join(output, "rank_*", "*.ckpt")))
    steps = {path: step for path in paths if (step := stored_step(path)) is not None}
    for path in sorted(steps, key=lambda path: -steps[path]):
        try:
            saved: dict[str, Parameter] = ms.load_checkpoint(path, crc_check=crc_check)
        except ValueError as error:
            print(f"{path} cannot be read, looking for another one: {error}", flush=True)
            continue
        return saved
    return {}


def steps_in(saved: dict[str, Parameter]) -> int:
    return int(saved["global_step"].asnumpy().reshape(-1)[0])


def main() -> None:
    arguments = argument_parser().parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=arguments.device == "CPU")
    ms.set_device(arguments.device)
    if "ARF:1" in os.getenv("MS_ENABLE_TFT", ""):
        _tft_handler.init(config=None)
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(arguments.seed)

    network = Network()
    dataset = create_dataset(arguments, get_group_size(), get_rank())
    rates = [0.02 * (1 - step / (2 * arguments.steps)) for step in range(arguments.steps)]
    momentum = with_global_norm(nn.Momentum) if arguments.norm_threshold else nn.Momentum
    optimizer_class = TrainFaultTolerance.get_optimizer_wrapper(momentum)
    optimizer = optimizer_class(network.trainable_params(), learning_rate=rates, momentum=0.9)
    network.set_train()
    loss = nn.CrossEntropyLoss()
    if arguments.graph:
        model = Model(GraphStep(network, loss, optimizer).set_train())
    else:
        model = Model(network, loss_fn=loss, optimizer=optimizer)

    initial_epoch, initial_step = 0, 0
    saved: dict[str, Parameter] = {}
    if arguments.is_recover:
        saved, initial_step = load_to_resume(arguments.output, bool(arguments.crc_check))
    elif arguments.go_on and (saved := load_newest_periodic(arguments.output, bool(arguments.crc_check))):
        initial_step = steps_in(saved)
    if saved:
        ms.load_param_into_net(network, saved)
        ms.load_param_into_net(optimizer, saved)
        initial_epoch = initial_step // dataset.get_dataset_size()
        dataset.set_init_step(initial_step)

    checkpoints = os.path.join(arguments.output, f"rank_{get_rank()}")
    callbacks = [LossMonitor(1), LastStep(arguments.steps, optimizer)]
    if arguments.norm_threshold:
        monitor = GlobalNormMonitor(
            arguments.output, arguments.norm_threshold, optimizer, skip_data=bool(arguments.skip_data)
        )
        callbacks.insert(1, monitor)
    if any(f"{name}:1" in os.getenv("MS_ENABLE_TFT", "") for name in ("TTP", "UCE", "HCCE", "ARF", "TRE", "TSP")):
        callbacks.append(
            TrainFaultTolerance(
                arguments.output, initial_step=initial_step, ckpt_load_fn=newest_checkpoint(checkpoints)
            )
        )
    if arguments.checkpoint_interval:
        configuration = CheckpointConfig(
            save_checkpoint_steps=arguments.checkpoint_interval,
            keep_checkpoint_max=10,
            integrated_save=False,
            async_save=bool(arguments.asynchronous_saving),
            crc_check=bool(arguments.crc_check),
            # A resumed training goes on with the epochs and counts its steps from 0 (MindSpore 2.10, train/model.py).
            append_info=[{"epoch_num": 0, "step_num": initial_step}],
        )
        callbacks.append(ModelCheckpoint("mnist", checkpoints, configuration))
    epochs = math.ceil(arguments.steps / dataset.get_dataset_size())
    model.train(epochs, dataset, callbacks=callbacks, dataset_sink_mode=False, initial_epoch=initial_epoch)


if __name__ == "__main__":
    main()
