"""Bugs in ``gradient-accumulation``: it reports its steps by lines, and counts its updates by itself."""

from tests.planted.plant import PlantedJob, plant

LOADS = "    ms.load_param_into_net(net, saved)\n    ms.load_param_into_net(optimizer, saved)\n"
OPTIMIZER = "    ms.load_param_into_net(optimizer, saved)\n"
UPDATE = "    optimizer(reducer(tuple(grad / ACCUMULATE for grad in total)))\n"
PARTS = "{**net.parameters_dict(), **optimizer.parameters_dict()}"
SAVED = '[{"name": k, "data": v} for k, v in parts.items()]'
FILE = 'str(folder / f"{done}.ckpt")'

WARM_UP = """    if args.resume:
        optimizer.learning_rate.set_data(Tensor(0.01 if update < done + 3 else 0.02, ms.float32))
"""

ROUNDED = """[
            {"name": k, "data": v.astype(ms.float16).astype(ms.float32) if k in net.parameters_dict() else v}
            for k, v in parts.items()
        ]"""

JOB = PlantedJob(
    "gradient-accumulation",
    "accumulate.py",
    {
        "nothing-loaded": plant((LOADS, "")),
        "moments-lost": plant((OPTIMIZER, "")),
        "weights-only": plant((PARTS, "net.parameters_dict()")),
        "batch-skipped": plant(("default_rng([update, part,", "default_rng([update + args.resume, part,")),
        "schedule-restarted": plant((UPDATE, WARM_UP + UPDATE)),
        "older-checkpoint": plant(
            (FILE, FILE.replace("{done}", "{done - args.save_updates}")), options=("--fault-step=7",)
        ),
        "parameter-lost": plant((LOADS, '    saved.pop("2.bias")\n' + LOADS)),
        "rounded-save": plant((SAVED, ROUNDED)),
    },
)
