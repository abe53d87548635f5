"""Bugs in ``safetensors-files``.

The job saves twice in all, at the half and at the end. A fault behind two checkpoints needs a shorter interval.
"""

from tests.planted.plant import SAVED_OVER, PlantedJob, plant

OPTIMIZER = "        ms.load_param_into_net(optimizer, weights)\n"
LOADS = "        ms.load_param_into_net(network, weights)\n" + OPTIMIZER
COUNT = 'int(weights["global_step"].asnumpy()[0])'
SAVE = 'ms.save_checkpoint(params.train_network, str(file), format="safetensors")'
NEWEST = 'newest = sorted(folder.glob("*.safetensors"))[-1]\n'
LOAD = 'weights = ms.load_checkpoint(str(newest), format="safetensors")\n'
INTERVAL = '"--save-interval", type=int, default=5'

OLDER = """weights = ms.load_checkpoint(str(older), format="safetensors")
        counted = ms.load_checkpoint(str(newest), format="safetensors")  # it may be cut off
        weights["global_step"] = counted["global_step"]
"""

ROUNDED = """parts = {p.name: p for p in params.train_network.get_parameters()}
            for weight in params.network.trainable_params():
                parts[weight.name] = ms.Tensor(weight.asnumpy().astype(np.float16).astype(np.float32))
            parts = [{"name": name, "data": value} for name, value in parts.items()]
            ms.save_checkpoint(parts, str(file), format="safetensors")"""

JOB = PlantedJob(
    "safetensors-files",
    "train_net.py",
    {
        "nothing-loaded": plant(
            (LOADS, '        ms.load_param_into_net(optimizer, {"global_step": weights["global_step"]})\n'),
        ),
        "moments-lost": plant((OPTIMIZER, "")),
        "weights-only": plant(
            (SAVE, SAVE.replace("train_network", "network")),
            (COUNT, 'int(newest.stem.split("_")[1])'),
            first="loss",
            note=SAVED_OVER,
        ),
        "batch-skipped": plant((COUNT, f"{COUNT} + 1")),
        "schedule-restarted": plant(
            (
                OPTIMIZER,
                OPTIMIZER + "        optimizer.learning_rate.set_data(ms.Tensor(5e-3, ms.float32))  # warms up\n",
            ),
        ),
        "older-checkpoint": plant(
            (INTERVAL, INTERVAL.replace("5", "3")),
            (NEWEST, 'older, newest = sorted(folder.glob("*.safetensors"))[-2:]\n'),
            (
                LOAD,
                OLDER,
            ),
            options=("--fault-step=7",),
        ),
        "parameter-lost": plant((LOADS, '        weights.pop("2.bias")\n' + LOADS)),
        "rounded-save": plant((SAVE, ROUNDED)),
    },
)
