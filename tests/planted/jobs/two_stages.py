"""Bugs in ``two-stages``: each rank loads its part twice, into its layer and into its optimizer."""

from tests.planted.plant import PlantedJob, plant

LAYER = '    ms.load_checkpoint(f"{folder}/{begin}.ckpt", layer)\n'
OPTIMIZER = '    ms.load_checkpoint(f"{folder}/{begin}.ckpt", optimizer)\n'
PARTS = "{**layer.parameters_dict(), **optimizer.parameters_dict()}"
SAVED = '[{"name": k, "data": v} for k, v in parts.items()]'
DATA = "    rng = np.random.default_rng(i)\n"

WARM_UP = """    if args.restart:
        rate = 0.05 * min(1, (i - begin + 1) / 3)
        optimizer.learning_rate.set_data(Tensor(rate, ms.float32))
"""

ROUNDED = '[{"name": k, "data": small(v) if k in layer.parameters_dict() else v} for k, v in parts.items()]'

SMALL = '''def small(weight):
    """Half precision is enough for a file."""
    return Tensor(weight.asnumpy().astype(np.float16).astype(np.float32))


def first_loss('''

JOB = PlantedJob(
    "two-stages",
    "pipe.py",
    {
        "nothing-loaded": plant((LAYER + OPTIMIZER, "")),
        "moments-lost": plant((OPTIMIZER, "")),
        "weights-only": plant((PARTS, "layer.parameters_dict()")),
        "batch-skipped": plant((DATA, "    rng = np.random.default_rng(i + 1 if args.restart else i)\n")),
        "schedule-restarted": plant((DATA, WARM_UP + DATA)),
        "older-checkpoint": plant(
            (LAYER, LAYER.replace("{begin}", "{begin - args.snapshot_iters}")),
            (OPTIMIZER, OPTIMIZER.replace("{begin}", "{begin - args.snapshot_iters}")),
            options=("--fault-step=7",),
        ),
        "parameter-lost": plant(
            (LAYER, LAYER.replace("layer)", 'layer, choice_func=lambda name: name != "bias")')),
            (OPTIMIZER, OPTIMIZER.replace("optimizer)", 'optimizer, choice_func=lambda name: name != "bias")')),
        ),
        "rounded-save": plant((SAVED, ROUNDED), ("def first_loss(", SMALL)),
    },
)
