"""Bugs in ``model-train``: it resumes within an epoch, by the position in its data."""

from tests.planted.jobs.small_checkpoint import CLASS
from tests.planted.plant import PlantedJob, plant

OPTIMIZER = "        ms.load_param_into_net(opt, params)\n"
LOADS = "        ms.load_param_into_net(network, params)\n" + OPTIMIZER
DONE = '        done = int(params["global_step"].asnumpy().reshape(-1)[0])\n'
LOAD = "        params = ms.load_checkpoint(latest_checkpoint(ckpt_dir))\n"
POSITION = "train_data.set_init_step(done)"
CONFIG = "CheckpointConfig(save_checkpoint_steps=args.save_checkpoint_steps, "
NEWEST = "    return os.path.join(folder, names[-1])\n"

BY_NAME = """        epoch, step = os.path.basename(latest_checkpoint(ckpt_dir))[:-5].split("-")[1].split("_")
        done = (int(epoch) - 1) * steps_per_epoch + int(step)
"""

OLDER = """        older, newest = latest_checkpoints(ckpt_dir)
        params = ms.load_checkpoint(older)  # the newest may be cut off
        params["global_step"] = ms.load_checkpoint(newest)["global_step"]
"""

JOB = PlantedJob(
    "model-train",
    "train.py",
    {
        "nothing-loaded": plant(
            (LOADS, '        ms.load_param_into_net(opt, {"global_step": params["global_step"]})\n'),
        ),
        "moments-lost": plant((OPTIMIZER, "")),
        "weights-only": plant((CONFIG, f"{CONFIG}saved_network=network, "), (DONE, BY_NAME)),
        "batch-skipped": plant((POSITION, "train_data.set_init_step(done + 1)")),
        "schedule-restarted": plant(
            (OPTIMIZER, OPTIMIZER + "        opt.learning_rate.set_data(ms.Tensor(0.005, ms.float32))  # warms up\n"),
        ),
        "older-checkpoint": plant(
            ("def latest_checkpoint(folder)", "def latest_checkpoints(folder)"),
            (NEWEST, "    return [os.path.join(folder, name) for name in names[-2:]]\n"),
            (LOAD, OLDER),
            options=("--fault-step=10",),
        ),
        "parameter-lost": plant((LOADS, '        del params["2.bias"]\n' + LOADS)),
        "rounded-save": plant(("def parse_args():\n", f"{CLASS}def parse_args():\n")),
    },
)
