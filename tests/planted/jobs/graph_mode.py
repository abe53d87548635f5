"""Bugs in ``graph-mode``: the file is loaded into the training cell, which holds network and optimizer."""

from tests.planted.plant import PlantedJob, plant

LOAD = 'ms.load_checkpoint(str(config.checkpoints / f"r{rank}_{done}.ckpt"), train_net)\n'
SAVE = 'ms.save_checkpoint(train_net, str(config.checkpoints / f"r{rank}_{step + 1}.ckpt"))'

ROUNDED = """parts = {part.name: part for part in train_net.get_parameters()}
            for weight in net.trainable_params():
                parts[weight.name] = Tensor(weight.asnumpy().astype(np.float16).astype(np.float32))
            parts = [{"name": name, "data": value} for name, value in parts.items()]
            ms.save_checkpoint(parts, str(config.checkpoints / f"r{rank}_{step + 1}.ckpt"))"""

JOB = PlantedJob(
    "graph-mode",
    "run.py",
    {
        "nothing-loaded": plant((LOAD, LOAD.replace(", train_net", ""))),
        "moments-lost": plant((LOAD, LOAD.replace("train_net", "net"))),
        "weights-only": plant((SAVE, SAVE.replace("train_net", "net"))),
        "batch-skipped": plant(("*batch(step, rank, config)", "*batch(step + restore, rank, config)")),
        "schedule-restarted": plant(
            (LOAD, LOAD + "        optimizer.learning_rate.set_data(Tensor(config.lr / 2, ms.float32))  # warms up\n"),
        ),
        "older-checkpoint": plant(
            (LOAD, LOAD.replace("{done}", "{done - config.checkpoint_every}")), options=("--fault-step=7",)
        ),
        "parameter-lost": plant(
            (LOAD, LOAD.replace("train_net)", 'train_net, choice_func=lambda name: name != "fc2.bias")')),
        ),
        "rounded-save": plant((SAVE, ROUNDED)),
    },
)
