"""Bugs in ``with-dropout``, whose noise is measured with the bug in it; it resumes at the end of an epoch."""

from tests.planted.jobs.small_checkpoint import CLASS
from tests.planted.plant import PlantedJob, plant

OPTIMIZER = "    ms.load_param_into_net(optimizer, values)\n"
LOADS = "    ms.load_param_into_net(net, values)\n" + OPTIMIZER
EPOCHS = 'int(values["global_step"].asnumpy()[0]) // STEPS_PER_EPOCH\n'
BY_NAME = 'int(file.rsplit("-", 1)[1].split("_")[0])\n'
NEWEST = 'file = str(max(Path(folder).glob("*.ckpt"), key=lambda path: path.stat().st_mtime_ns))\n'
LOAD = "    values = ms.load_checkpoint(file)\n"
CONFIG = "CheckpointConfig(save_checkpoint_steps=STEPS_PER_EPOCH)"
LABELS = "y = (x @ rng.normal(size=(30, 5))).argmax(axis=1).astype(np.int32)\n"
BUILD = "def build():\n"

JOB = PlantedJob(
    "with-dropout",
    "train.py",
    {
        "nothing-loaded": plant(
            (LOADS, '    ms.load_param_into_net(optimizer, {"global_step": values["global_step"]})\n'),
        ),
        "moments-lost": plant((OPTIMIZER, "")),
        "weights-only": plant((CONFIG, CONFIG.replace(")", ", saved_network=net)")), (EPOCHS, BY_NAME)),
        "batch-skipped": plant(
            (
                LABELS,
                LABELS + "if opt.ckpt:  # the batch of the checkpoint is trained\n"
                "    x, y = (np.roll(part, -32 * get_group_size(), axis=0) for part in (x, y))\n",
            ),
        ),
        "schedule-restarted": plant(
            (OPTIMIZER, OPTIMIZER + "    optimizer.learning_rate.set_data(ms.Tensor(0.005, ms.float32))  # warms up\n"),
        ),
        "older-checkpoint": plant(
            (
                NEWEST,
                'older, newest = sorted(Path(folder).glob("*.ckpt"), key=lambda path: path.stat().st_mtime_ns)[-2:]\n',
            ),
            (
                LOAD,
                "    file = str(newest)\n    values = ms.load_checkpoint(str(older))  # the newest may be cut off\n",
            ),
            (EPOCHS, BY_NAME),
            options=("--fault-step=12",),
        ),
        "parameter-lost": plant((LOADS, '    del values["3.bias"]  # the head is a new one\n' + LOADS)),
        "rounded-save": plant((BUILD, f"import os\n\n\n{CLASS}{BUILD}")),
    },
)
