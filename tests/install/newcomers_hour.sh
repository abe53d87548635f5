#!/bin/sh
# The first hour with chaos, from the installed wheel to the commands of every night. No MindSpore, no NPU, no root.
#
#   mkdir hour && cd hour && python3 -m venv environment && PATH=$PWD/environment/bin:$PATH
#   sh newcomers_hour.sh chaos_ascend-VERSION-py3-none-any.whl
#
# Each step prints its commands and their output, and checks what it promises. The first broken promise ends the script.
# PIP_NO_DEPS=1 and PIP_NO_INDEX=1 leave out the network where the environment has the wheel's requirements already.
set -eu

wheel=$1
output=$(mktemp)
trap 'rm -f "$output"' EXIT

step() { printf '\n== %s ==\n' "$*"; }

fail() {
    printf 'BROKEN: %s\n' "$*"
    exit 1
}

# ends CODE COMMAND...: the command ends with this exit code
ends() {
    wanted=$1
    shift
    printf '$ %s\n' "$*"
    code=0
    "$@" >"$output" 2>&1 || code=$?
    cat "$output"
    [ "$code" -eq "$wanted" ] || fail "exit code $code instead of $wanted: $*"
    if grep -aq Traceback "$output"; then fail "a traceback: $*"; fi
}

# says TEXT: the last command has printed it
says() { grep -aqF -e "$1" "$output" || fail "the last command does not say: $1"; }

# report: the last two lines of the last command are the verdict and the path of a report that exists
report() {
    tail -n 2 "$output" | head -n 1 | grep -aq ": $1" || fail "the line before the last has no verdict $1"
    page=$(tail -n 1 "$output" | sed -n 's/^see //p')
    [ -s "$page" ] || fail "there is no report ${page:-in the last line}"
    cp "$page" last-report.html
}

step "1. Install the wheel"
ends 0 python -m pip install --quiet --disable-pip-version-check "$wheel"
ends 0 chaos --version
ends 0 chaos doctor plain-kill-rank
ends 0 chaos list --tag plain
says plain-kill-rank

step "2. The example: what should happen, and what happens"
ends 0 chaos init --example
ends 0 chaos plan chaos-example/plain.yaml
says 'mechanism   TTP'
ends 0 chaos run chaos-example/plain.yaml
report pass

step "3. A scenario of your own"
cat >mine.yaml <<'YAML'
chaos: 1
name: mine
description: 两个 rank 中的一个在第 6 步被杀死。 Rank 1 of two is killed in step 6.
cluster: {ranks: 2}
job: {kind: plain, steps: 12, protection: [TTP]}
faults:
  - kind: kill
    target: {rank: 1}
    trigger: {step: 60, phase: allreduce.enter}
YAML
ends 64 chaos validate mine.yaml
says 'mine.yaml:9:21: step 60 of 12: the job trains 12 steps'
sed -i 's/step: 60/step: 6/' mine.yaml
ends 0 chaos validate mine.yaml
ends 0 chaos plan mine.yaml
says 'checkpoint  step 5, saved by rank 0'
ends 0 chaos run "$PWD/mine.yaml"
report pass

step "4. A job of your own, without a framework"
mkdir job
cat >job/start.sh <<'SHELL'
#!/bin/sh
# Start the ranks of a job: sh start.sh RANKS COMMAND...
ranks=$1
shift
rm -rf exchange
mkdir exchange
for rank in $(seq 0 $((ranks - 1))); do
    RANK=$rank WORLD_SIZE=$ranks "$@" &
done
wait
SHELL
cat >job/train.py <<'PYTHON'
"""Fit a line through made-up points with momentum on all ranks, and save a checkpoint every 4 steps."""

import argparse
import os
import time
from pathlib import Path

import chaos_steps
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--save-every", type=int, default=4)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def all_reduce(step, gradient):
    """Return the mean of the gradients of all ranks, which hand them over in files."""
    np.save(f"exchange/{rank}.npy", gradient)
    os.rename(f"exchange/{rank}.npy", f"exchange/{step}_{rank}.npy")
    files = [Path(f"exchange/{step}_{other}.npy") for other in range(ranks)]
    while not all(file.exists() for file in files):
        time.sleep(0.001)
    return sum(np.load(file) for file in files) / ranks


saved = Path("saved") / f"rank_{rank}"
weights = {"weight": np.zeros(3)}
momenta = {"momentum.weight": np.zeros(3)}
done = 0
if args.resume:
    newest = max(saved.glob("step_*.npz"), key=lambda path: int(path.stem.split("_")[1]))
    state = np.load(newest)
    done = int(state["step_num"])
    weights["weight"][:] = state["weight"]
    momenta["momentum.weight"][:] = state["momentum.weight"]
    chaos_steps.loaded(newest, step=done)

chaos_steps.state_is(weights, momenta)
for step in range(done + 1, args.steps + 1):
    points = np.random.default_rng([step, rank]).normal(size=(16, 3))
    chaos_steps.step_begins(step, points)
    errors = points @ weights["weight"] - points @ [1.0, -2.0, 0.5]
    gradient = all_reduce(step, points.T @ errors / 16)
    momenta["momentum.weight"][:] = 0.9 * momenta["momentum.weight"] + gradient
    weights["weight"] -= 0.05 * momenta["momentum.weight"]
    chaos_steps.step_ends(float((errors**2).mean()))
    if step % args.save_every == 0:
        saved.mkdir(parents=True, exist_ok=True)
        path = saved / f"step_{step}.npz"
        with chaos_steps.saving(path, step=step):
            np.savez(path, **weights, **momenta, step_num=step)
PYTHON
echo '$ chaos steps > job/chaos_steps.py'
chaos steps >job/chaos_steps.py
ends 0 chaos init job --launch "sh start.sh 2 python train.py"
says 'wrote job/train-kill.yaml'
ends 0 chaos plan job/train-kill.yaml
says 'resume      at step 5'
ends 0 chaos run job/train-kill.yaml
report pass

step "5. A run that fails: the resume forgets the momentum"
sed -i '/momentum.weight.*= state/d' job/train.py
ends 1 chaos run job/train-kill.yaml
report fail
ends 1 chaos analyze
head -n 1 "$output" | grep -aq "^resume: the optimizer's moments were not restored on ranks 0-1" ||
    fail "the first line does not name the cause"
grep -aq 'moments were not restored on ranks 0-1' last-report.html || fail "the report does not name the cause"
sed -i '/state\["weight"\]/a\    momenta["momentum.weight"][:] = state["momentum.weight"]' job/train.py

step "6. Every night"
mkdir nights
ends 0 chaos heal --reports nights
ends 0 chaos run mine.yaml job/train-kill.yaml --keep-going --reports nights
says 'pass: 2 cells run, see nights/summary.json'
ends 0 chaos report nights
[ -s nights/index.html ] || fail "there is no nights/index.html"
ends 0 chaos trend --reports nights
says 'mine: 1 run (1 pass)'
ends 2 chaos gate --against last:30 --reports nights
says 'mine: too few samples: 1 passing run, '
ends 0 chaos heal --reports nights

step "Every promise was kept"
