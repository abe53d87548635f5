"""Bugs in ``every-rank-saves``: it resumes within an epoch, and has limits for the moments of RMSProp."""

from tests.planted.plant import SAVED_OVER, PlantedJob, plant

OPTIMIZER = "        ms.load_param_into_net(opt, params)\n"
LOADS = "        ms.load_param_into_net(net, params)\n" + OPTIMIZER
SAVE = 'ms.save_checkpoint(args.train_network, os.path.join(self._out, f"tune_rank{get_rank()}_{step}.ckpt"))'
FILE = 'f"tune_rank{rank}_{max(steps)}.ckpt"'
POSITION = "data.set_init_step(max(steps))"

ROUNDED = """parts = {part.name: part for part in args.train_network.get_parameters()}
        for weight in args.network.trainable_params():
            parts[weight.name] = weight.astype(ms.float16).astype(ms.float32)
        ms.save_checkpoint(
            [{"name": name, "data": value} for name, value in parts.items()],
            os.path.join(self._out, f"tune_rank{get_rank()}_{step}.ckpt"),
        )"""

JOB = PlantedJob(
    "every-rank-saves",
    "finetune.py",
    {
        "nothing-loaded": plant((LOADS, "")),
        "moments-lost": plant((OPTIMIZER, "")),
        "weights-only": plant((SAVE, SAVE.replace("train_network", "network")), first="loss", note=SAVED_OVER),
        "batch-skipped": plant((POSITION, "data.set_init_step(max(steps) + 1)")),
        "schedule-restarted": plant(
            (OPTIMIZER, OPTIMIZER + "        opt.learning_rate.set_data(ms.Tensor(0.005, ms.float32))  # warms up\n"),
        ),
        "older-checkpoint": plant(
            (FILE, FILE.replace("max(steps)", "sorted(steps)[-2]")), options=("--fault-step=10",)
        ),
        "parameter-lost": plant((LOADS, '        del params["2.bias"]\n' + LOADS)),
        "rounded-save": plant((SAVE, ROUNDED)),
    },
)
