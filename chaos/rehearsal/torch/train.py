"""The script of every rank: a loop like Megatron's that trains a small network with DDP, protected by MindIO TFT.

Its arguments have the names of Megatron and MindSpeed-LLM.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn

from chaos.agent.torch.optimizers import hyperparameters_of
from chaos.rehearsal.torch import machine
from chaos.rehearsal.torch.checkpoints import Checkpoints
from chaos.rehearsal.torch.device import BACKEND
from chaos.rehearsal.torch.model import State
from chaos.rehearsal.torch.replica import replica

JOINED = "ARF FINISH"
"""The error that ends the first training of a process in a lost one's place: its state is still to come."""


def argument_parser() -> argparse.ArgumentParser:
    """Return a parser of the job's arguments."""
    parser = argparse.ArgumentParser(description="Train a small network in PyTorch with fault tolerance.")
    parser.add_argument("--train-iters", type=int, required=True)
    parser.add_argument("--save", type=Path, required=True, help="directory for checkpoints")
    parser.add_argument("--load", action="store_true", help="go on from the checkpoint that the tracker names")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--enable-high-availability", action="store_true")
    parser.add_argument("--enable-hbmfault-repair", action="store_true")
    parser.add_argument("--enable-worker-reboot", action="store_true")
    parser.add_argument("--step-seconds", type=float, default=0.02, help="what a step computes besides, in seconds")
    parser.add_argument("--save-seconds", type=float, default=0.0, help="how much longer a last save takes")
    return parser


class Trainer:
    """The training of one rank."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._device = device = machine.device()
        self._state = State(arguments.seed, arguments.train_iters)
        self._checkpoints = Checkpoints(arguments.save, self._state, device.training, arguments.save_seconds)
        self._tolerance = self._protected() if arguments.enable_high_availability else None

    def _protected(self) -> Any:
        from chaos.rehearsal.torch.tolerance import Tolerance

        arguments = self._arguments
        return Tolerance(
            self._device,
            self._state,
            self._checkpoints,
            repairs=arguments.enable_hbmfault_repair,
            reboots=arguments.enable_worker_reboot,
        )

    def run(self) -> None:
        """Form the groups, train to the last iteration, and leave."""
        tolerance = self._tolerance
        if tolerance is not None:
            tolerance.start()
        distributed.init_process_group(BACKEND)
        if self._arguments.load:
            self._checkpoints.load()
        if tolerance is None:
            self._train()
        else:
            from mindio_ttp.framework_ttp import tft_exception_handler

            tolerance.register()
            tft_exception_handler(self._train)()
        distributed.destroy_process_group()

    def _train(self) -> None:
        """Train on after the iteration of the state; called again after each repair, with a new DDP.

        An error in a backward run leaves a reducer behind that waits for the rest of its gradients. No weights are sent
        at the beginning: all ranks have the same, and what a repair has missed must not be put right here.
        """
        training, state, tolerance = self._device.training, self._state, self._tolerance
        if tolerance is not None and tolerance.joins:
            tolerance.joins = False
            training.joins()
            raise RuntimeError(JOINED)
        training.begin(state.iteration, state.named())
        wrapped = replica(state.model)
        while state.iteration < self._arguments.train_iters:
            self._step(wrapped)
        training.end()
        self._device.note_trained()

    def _step(self, wrapped: Any) -> None:
        state, training, tolerance = self._state, self._device.training, self._tolerance
        training.step_begin(state.iteration + 1)
        points, labels = state.batch(self._device.rank)
        time.sleep(self._arguments.step_seconds)  # as long as a larger network would compute
        training.reach("forward")
        loss = nn.functional.cross_entropy(wrapped(points), labels)
        state.optimizer.zero_grad()
        loss.backward()
        if tolerance is not None:
            tolerance.begin_update()
        self._device.update_begins()
        state.update()
        self._device.update_ends()
        if tolerance is not None:
            tolerance.end_update()
        training.step_end(loss.detach(), [points, labels], hyperparameters_of([state.optimizer]))
        if self._device.rank == self._device.ranks - 1:
            _log(state.iteration, self._arguments.train_iters, loss.item())
        if tolerance is not None:
            tolerance.end_step()


def _log(iteration: int, iterations: int, loss: float) -> None:
    """Log a line as Megatron's last rank writes it."""
    print(
        f" iteration {iteration:8d}/{iterations:8d} | lm loss: {loss:.6E} | number of nan iterations:   0 |", flush=True
    )


def main() -> None:
    """Train as the command line says."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    Trainer(argument_parser().parse_args()).run()


if __name__ == "__main__":
    main()
