"""The sample of the power-off checkpoint document, as a job to rehearse: its network, its optimizer, its flow.

Nothing in it knows of a rehearsal. It is the document's flow step by step: five layers (784, 512, 5120, 5120, 512, 10;
the first a bare product), ``MnistDataset`` in batches of 32 that every rank reads whole, plain SGD with 1e-2 in the
fault tolerance's wrapper, five epochs, ``--is-recover``. The smallest difference that lets it run and be judged:

1. PyNative mode on the device named by --device, synchronous on a CPU (the document: graph mode, O1, on Ascend); so no
   strategy file is configured either, which data parallelism does not read;
2. ``TrainFaultTolerance`` in place of ``TFTRegister``, which MindSpore 2.10 no longer has, and its optimizer wrapper in
   place of ``OptTFTWrapper``, which is still there but fails with SGD (it asks for an attribute ``cache_enable``);
   address and port of the controller come from the environment (MS_TFT_IP, MS_TFT_PORT);
3. epoch and step of the resume are read from the checkpoint that is found, where the document has them typed in;
4. the checkpoint is loaded into the optimizer too, so that its step counter goes on;
5. the loss function, which the document makes, is also given to the model;
6. a seed, and no shuffling: two runs must read the same batches to be compared;
7. an epoch holds --steps-per-epoch batches, and training ends after --steps; directories are arguments;
8. --width sets the width of the inner layers, 5120 in the document and by default;
9. --data names the pictures, which are read in the format of MNIST whatever their origin.
"""

from __future__ import annotations

import argparse
import glob
import math
import os
import re

import mindspore as ms
import mindspore.dataset as ds
from mindspore import Parameter, Tensor, nn, ops, train
from mindspore.common.initializer import HeUniform, initializer
from mindspore.communication import init

_BATCH_SIZE = 32
_EPOCHS = 5


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train the network of the power-off checkpoint document.")
    parser.add_argument("--device", default="Ascend")
    parser.add_argument("--data", required=True, help="directory with MNIST files")
    parser.add_argument("--output", required=True, help="directory for end-of-life checkpoints")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--steps-per-epoch", type=int, required=True)
    parser.add_argument("--width", type=int, default=5120, help="width of the two inner layers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--is-recover", type=int, default=0, choices=[1, 0])
    arguments, _ = parser.parse_known_args()  # batch size and periodic checkpoints are not the document's
    return arguments


class MatMulCell(nn.Cell):  # type: ignore[misc]
    """A product with a bare parameter."""

    def __init__(self, shape: tuple[int, int] = (28 * 28, 512)) -> None:
        super().__init__()
        self.param = Parameter(initializer(HeUniform(math.sqrt(5)), shape), name="param")
        self.matmul = ops.MatMul()

    def construct(self, x: Tensor) -> Tensor:
        return self.matmul(x, self.param)


class Network(nn.Cell):  # type: ignore[misc]
    """Five layers with ReLU between them; 31.9 million parameters in the document's width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.layer1 = MatMulCell()
        self.relu1 = nn.ReLU()
        self.layer2 = nn.Dense(512, width)
        self.relu2 = nn.ReLU()
        self.layer3 = nn.Dense(width, width)
        self.relu3 = nn.ReLU()
        self.layer4 = nn.Dense(width, 512)
        self.relu4 = nn.ReLU()
        self.layer5 = nn.Dense(512, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.relu1(self.layer1(self.flatten(x)))
        x = self.relu2(self.layer2(x))
        x = self.relu3(self.layer3(x))
        x = self.relu4(self.layer4(x))
        return self.layer5(x)


class LastStep(train.Callback):  # type: ignore[misc]
    """Ends the training once the optimizer has done all its steps."""

    def __init__(self, steps: int, optimizer: nn.Optimizer) -> None:
        super().__init__()
        self._steps = steps
        self._done = optimizer.global_step

    def on_train_step_end(self, run_context: train.RunContext) -> None:
        if int(self._done.asnumpy().reshape(-1)[0]) >= self._steps:
            run_context.request_stop()


def create_dataset(path: str, batches: int) -> ds.Dataset:
    dataset = ds.MnistDataset(path, num_samples=batches * _BATCH_SIZE, shuffle=False)
    image_transforms = [
        ds.vision.Rescale(1.0 / 255.0, 0),
        ds.vision.Normalize(mean=(0.1307,), std=(0.3081,)),
        ds.vision.HWC2CHW(),
    ]
    dataset = dataset.map(image_transforms, "image")
    dataset = dataset.map(ds.transforms.TypeCast(ms.int32), "label")
    return dataset.batch(_BATCH_SIZE)


def find_checkpoint(output: str) -> str:
    """Return the file in the newest finished end-of-life directory; any rank's, since all are replicas."""
    finished = {
        int(match[1]): directory
        for directory in glob.glob(os.path.join(output, "t[tf][pt]_saved_checkpoints-step_*"))
        if (match := re.search(r"step_(\d+)$", directory))
    }
    if not finished:
        raise FileNotFoundError(f"no finished end-of-life checkpoint in {output}")
    return sorted(glob.glob(os.path.join(finished[max(finished)], "rank_*", "ttp_rank_*.ckpt")))[0]


def main() -> None:
    arguments = read_arguments()
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=arguments.device == "CPU")
    ms.set_device(arguments.device)
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL)
    init()
    ms.set_seed(arguments.seed)

    network = Network(arguments.width)
    dataset = create_dataset(arguments.data, arguments.steps_per_epoch)
    optimizer = train.TrainFaultTolerance.get_optimizer_wrapper(nn.SGD)(network.trainable_params(), 1e-2)
    network.set_train()
    model = ms.Model(network, loss_fn=nn.CrossEntropyLoss(), optimizer=optimizer)

    initial_epoch, initial_step = 0, 0
    if bool(arguments.is_recover):
        saved = ms.load_checkpoint(find_checkpoint(arguments.output))
        ms.load_param_into_net(network, saved)
        ms.load_param_into_net(optimizer, saved)
        initial_step = int(saved["step_num"])
        dataset.set_init_step(initial_step)
        initial_epoch = int(saved["epoch_num"]) - 1

    callbacks = [
        train.TimeMonitor(data_size=1),
        train.LossMonitor(1),
        LastStep(arguments.steps, optimizer),
        train.TrainFaultTolerance(arguments.output, initial_step=initial_step),
    ]
    model.train(_EPOCHS, dataset, callbacks=callbacks, dataset_sink_mode=False, initial_epoch=initial_epoch)


if __name__ == "__main__":
    main()
