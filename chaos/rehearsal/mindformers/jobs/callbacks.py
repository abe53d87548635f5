"""A training script of plain MindSpore with MindFormers' callbacks, which report losses, norms and checkpoints.

It knows nothing of chaos. With --resume it goes on from the checkpoint that MindFormers chooses by its meta.json.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindformers.core.callback import CheckpointMonitor, MFLossMonitor, TrainingStateMonitor
from mindformers.core.callback.build_callback import build_callback
from mindformers.tools.register import MindFormerConfig
from mindformers.tools.resume_ckpt import get_resume_checkpoint
from mindspore import Tensor, nn, ops
from mindspore.train import Model

_BATCH = 16


class Step(nn.TrainOneStepCell):  # type: ignore[misc]
    """One training step with the outputs of MindFormers' own: loss, overflow, loss scale, learning rate, norm."""

    def construct(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        loss = self.network(inputs, labels)
        gradients = self.grad(self.network, self.weights)(inputs, labels, ops.ones_like(loss))
        norm = ops.sqrt(sum((ops.square(gradient).sum() for gradient in gradients), start=Tensor(0.0)))
        self.optimizer(gradients)
        return loss, Tensor(False), Tensor(1.0), Tensor(0.05), norm.reshape(1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network under MindFormers' callbacks.")
    parser.add_argument("--output", required=True)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--save-steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--agent-callback", action="store_true", help="register a callback by its name")
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        return  # a single rank has no other to meet
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    ms.set_seed(arguments.seed)

    source = np.random.default_rng(arguments.seed)
    inputs = source.normal(size=(arguments.steps * _BATCH, 32)).astype(np.float32)
    labels = (inputs @ source.normal(size=(32, 10))).argmax(axis=1).astype(np.int32)
    data = ds.NumpySlicesDataset((inputs, labels), shuffle=False).batch(_BATCH, num_parallel_workers=1)
    steps = data.get_dataset_size()

    network = nn.SequentialCell(nn.Dense(32, 64), nn.ReLU(), nn.Dense(64, 10))
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)
    step = Step(nn.WithLossCell(network, nn.CrossEntropyLoss()), optimizer)
    registered = []
    if arguments.agent_callback:  # before the load, as in MindFormers' Trainer
        registered.append(build_callback(MindFormerConfig(type="ChaosAgent", auto_register="chaos_agent.ChaosAgent")))
    done = 0
    if arguments.resume:
        checkpoints = Path(arguments.output) / "checkpoint"
        name = get_resume_checkpoint(str(checkpoints), True, True, "ckpt")
        saved = ms.load_checkpoint(str(checkpoints / "rank_0" / name))
        ms.load_param_into_net(step, saved)
        done = int(saved["step_num"].asnumpy())
        data.set_init_step(done)
    callbacks = [
        MFLossMonitor(learning_rate=0.05, origin_epochs=1, dataset_size=steps, initial_step=done),
        TrainingStateMonitor(1, {"weight_state_format": "log"}, dataset_size=steps, initial_step=done),
        CheckpointMonitor(
            "net",
            arguments.output,
            save_checkpoint_steps=arguments.save_steps,
            integrated_save=False,
            append_info=[{"epoch_num": 0, "step_num": done, "global_step": done, "loss_scale": 1}],
        ),
        *registered,
    ]
    Model(step).train(1, data, callbacks=callbacks, dataset_sink_mode=False)


if __name__ == "__main__":
    main()
