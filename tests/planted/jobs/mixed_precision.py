"""Bugs in ``mixed-precision``: a loop that ``chaos`` finds by itself, and that counts its steps by the file's name."""

from tests.planted.plant import PlantedJob, plant

LOADS = "    ms.load_param_into_net(model, values)\n    ms.load_param_into_net(optimizer, values)\n"
OPTIMIZER = "    ms.load_param_into_net(optimizer, values)\n"
UPDATE = "    optimizer(scaler.unscale(reducer(grads)))\n"
PARTS = "{**model.parameters_dict(), **optimizer.parameters_dict()}"
SAVES = (
    '        ms.save_checkpoint([{"name": k, "data": v} for k, v in parts.items()], os.path.join(path, f"{step}.ckpt"))'
)
FILE = 'f"{last}.ckpt"'

WARM_UP = """    if flags.recover:
        optimizer.learning_rate.set_data(Tensor(0.005 if step < first + 2 else 0.01, ms.float32))
"""

ROUNDED = """        for name in model.parameters_dict():  # as the network computes
            parts[name] = parts[name].astype(ms.float16).astype(ms.float32)
"""

JOB = PlantedJob(
    "mixed-precision",
    "amp_train.py",
    {
        "nothing-loaded": plant((LOADS, "")),
        "moments-lost": plant((OPTIMIZER, "")),
        "weights-only": plant((PARTS, "model.parameters_dict()")),
        "batch-skipped": plant(("default_rng([step,", "default_rng([step + bool(flags.recover),")),
        "schedule-restarted": plant((UPDATE, WARM_UP + UPDATE)),
        "older-checkpoint": plant(
            (FILE, FILE.replace("{last}", "{last - flags.save_every}")), options=("--fault-step=7",)
        ),
        "parameter-lost": plant((LOADS, '    del values["2.bias"]\n' + LOADS)),
        "rounded-save": plant((SAVES, ROUNDED + SAVES)),
    },
)
