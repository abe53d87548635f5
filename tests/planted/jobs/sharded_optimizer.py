"""Bugs in ``sharded-optimizer``: each rank keeps the optimizer's state of half of the parameters."""

from tests.planted.plant import PlantedJob, plant

OPTIMIZER = "        ms.load_param_into_net(optimizer, state)\n"
LOADS = "        ms.load_param_into_net(net, state)\n" + OPTIMIZER
UPDATE = "        optimizer(tuple(shard(mean, rank, size)))\n"
PARTS = "{**net.parameters_dict(), **optimizer.parameters_dict()}"
SAVES = '            ms.save_checkpoint([{"name": k, "data": v} for k, v in parts.items()],'
FILE = 'f"{folder}/zero{done}.ckpt"'

WARM_UP = """        if args.resume:
            rate = 0.02 * min(1, (step - done) / 3)
            optimizer.learning_rate.set_data(Tensor(rate, ms.float32))
"""

ROUNDED = """            for param in everything:
                parts[param.name] = param.astype(ms.float16).astype(ms.float32)
"""

JOB = PlantedJob(
    "sharded-optimizer",
    "train.py",
    {
        "nothing-loaded": plant((LOADS, "")),
        "moments-lost": plant((OPTIMIZER, "")),
        "weights-only": plant((PARTS, "net.parameters_dict()")),
        "batch-skipped": plant(("default_rng([step, rank])", "default_rng([step + args.resume, rank])")),
        "schedule-restarted": plant((UPDATE, WARM_UP + UPDATE)),
        "older-checkpoint": plant(
            (FILE, FILE.replace("{done}", "{done - args.ckpt_interval}")), options=("--fault-step=7",)
        ),
        "parameter-lost": plant((LOADS, '        state.pop("2.bias")\n' + LOADS)),
        "rounded-save": plant((SAVES, ROUNDED + SAVES)),
    },
)
