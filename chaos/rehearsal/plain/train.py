"""The script of every rank: trains a small network in plain Python, with the switched-on fault tolerance."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy

from chaos.rehearsal.plain import machine
from chaos.rehearsal.plain.abnormal import ERROR, NormWatch
from chaos.rehearsal.plain.checkpoints import Checkpoints
from chaos.rehearsal.plain.data import Batches
from chaos.rehearsal.plain.device import PlainDevice
from chaos.rehearsal.plain.mesh import MOST_STAGES, Mesh
from chaos.rehearsal.plain.network import dropout
from chaos.rehearsal.plain.pipeline import computed
from chaos.rehearsal.plain.state import State
from chaos.rehearsal.plain.tolerance import JOINED, Tolerance, keeps_flag, protects, switched_on


def argument_parser() -> argparse.ArgumentParser:
    """Return a parser of the scenario's settings for the job."""
    parser = argparse.ArgumentParser(description="Train a small network in plain Python with fault tolerance.")
    parser.add_argument("--output", required=True, help="directory for checkpoints")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--steps-per-epoch", type=int, required=True)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--checkpoint-interval", type=int, default=0)
    parser.add_argument("--crc-check", type=int, default=0, choices=[1, 0], help="save checkpoints with a checksum")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model-parallel", type=int, default=1)
    parser.add_argument("--pipeline-stages", type=int, default=1, choices=range(1, MOST_STAGES + 1))
    parser.add_argument("--is-recover", type=int, default=0, choices=[1, 0])
    parser.add_argument("--continue", dest="go_on", action="store_true", help="go on from a periodic checkpoint")
    parser.add_argument(
        "--norm-threshold", type=float, default=0.0, help="global norm that calls for a rollback; 0: none"
    )
    parser.add_argument("--step-seconds", type=float, default=0.01, help="what a step computes besides, in seconds")
    return parser


class Trainer:
    """The training loop of one rank."""

    def __init__(self, arguments: argparse.Namespace, device: PlainDevice, on: frozenset[str]) -> None:
        self._arguments = arguments
        self._device = device
        self._training = device.training
        self._mesh = mesh = Mesh(device.rank, device.ranks, arguments.model_parallel, arguments.pipeline_stages)
        self._state = State(arguments.seed, mesh, flagged=keeps_flag(on))
        self._data = Batches(
            seed=arguments.seed, size=arguments.batch_size, per_epoch=arguments.steps_per_epoch, part=mesh.data
        )
        self._checkpoints = Checkpoints(
            arguments.output,
            self._state,
            mesh,
            device,
            per_epoch=arguments.steps_per_epoch,
            interval=arguments.checkpoint_interval,
            steps=arguments.steps,
            crc=bool(arguments.crc_check),
        )
        threshold = arguments.norm_threshold
        self._watch = NormWatch(arguments.output, threshold, device) if threshold else None
        self._rolls_back = "TRE" in on
        self._tolerance = Tolerance(on, device, self._state, mesh, self._checkpoints) if protects(on) else None

    def run(self) -> None:
        """Train to the last step, through every repair. Raises the error that ends the job."""
        if self._tolerance is not None:
            self._tolerance.start()
        self._device.join()
        position = self._restore()
        if self._tolerance is not None:
            self._tolerance.register()
        while True:
            try:
                self._train(position)
                break
            except RuntimeError as error:
                position = self._recover(error)
            except BaseException as error:
                if self._tolerance is not None:
                    self._tolerance.report_unknown(error)
                raise
        if self._tolerance is not None:
            self._tolerance.end()

    def _recover(self, error: RuntimeError) -> int:
        """Return the step at which training goes on after this error. Raises the error where there is none."""
        if self._rolls_back and ERROR in str(error):
            step = self._checkpoints.roll_back()
            print(f"Resume training after TREError from step {step}.", flush=True)
            return step
        if self._tolerance is None:
            raise error
        return self._tolerance.recover(error)

    def _restore(self) -> int:
        """Load the checkpoint to go on from. Returns the number of trained batches."""
        if self._arguments.is_recover:
            return self._checkpoints.resume()
        return self._checkpoints.load_newest_periodic() if self._arguments.go_on else 0

    def _train(self, position: int) -> None:
        if self._tolerance is not None:
            self._tolerance.begin()
            if self._tolerance.joins:
                self._tolerance.joins = False
                self._training.joins()
                raise RuntimeError(JOINED)
        self._training.begin(self._state.steps, self._state.parameters.items())
        while self._state.steps < self._arguments.steps:
            self._step(position)
            position += 1
        self._training.end()

    def _step(self, position: int) -> None:
        state, training = self._state, self._training
        training.step_begin(state.steps + 1)
        batch = self._data.batch(position)
        time.sleep(self._arguments.step_seconds)  # as long as a larger network would compute
        training.reach("forward")
        alterations = self._device.alterations
        batch = alterations.batch(batch)
        mask = dropout(state.parameters["random_state"], self._mesh)
        loss, rank_gradients = alterations.computed(
            *computed(self._device, self._mesh, state.parameters, batch, mask, alterations.activation)
        )
        mean = self._device.average(_flatten(rank_gradients), self._mesh.replicas)
        if self._tolerance is not None:
            self._tolerance.begin_update()
        self._device.update_begins()
        state.update(_unflatten(mean, rank_gradients))
        self._device.update_ends()
        training.step_end(loss, batch)
        if loss is not None:
            self._log(position, loss)
        if self._watch is not None:
            self._watch.judge(state.steps, mean)
        if self._tolerance is not None:
            self._tolerance.end_step()
        self._checkpoints.save_if_due()

    def _log(self, position: int, loss: Any) -> None:
        """Log a line as MindSpore's LossMonitor writes it."""
        epoch, place = divmod(position, self._arguments.steps_per_epoch)
        print(f"epoch: {epoch + 1} step: {place + 1}, loss is {float(loss)}", flush=True)


def _flatten(arrays: dict[str, Any]) -> Any:
    return numpy.concatenate([array.reshape(-1) for array in arrays.values()])


def _unflatten(flat: Any, like: dict[str, Any]) -> dict[str, Any]:
    parts, start = {}, 0
    for name, array in like.items():
        parts[name] = flat[start : start + array.size].reshape(array.shape)
        start += array.size
    return parts


def main() -> None:
    """Train as the command line and the environment say."""
    Trainer(argument_parser().parse_args(), machine.device(), switched_on(dict(os.environ))).run()


if __name__ == "__main__":
    main()
