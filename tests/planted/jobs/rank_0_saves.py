"""Bugs in ``rank-0-saves``: it resumes at the end of an epoch, so its data is shifted as a whole."""

from tests.planted.jobs.small_checkpoint import CLASS
from tests.planted.plant import PlantedJob, plant

LOADS = "    ms.load_param_into_net(net, params)\n    ms.load_param_into_net(opt, params)\n"
OPTIMIZER = "    ms.load_param_into_net(opt, params)\n"
EPOCHS = 'int(params["global_step"].asnumpy()[0]) // STEPS_PER_EPOCH\n'
NEWEST = 'last = max(glob.glob(os.path.join(args.ckpt_dir, "*.ckpt")), key=os.path.getmtime)'
BY_NAME = 'int(last.rsplit("-", 1)[1].split("_")[0])\n'
LABELS = "y = (x.sum(axis=1) > 0).astype(np.int32)\n"

JOB = PlantedJob(
    "rank-0-saves",
    "pretrain.py",
    {
        "nothing-loaded": plant(
            (LOADS, '    ms.load_param_into_net(opt, {"global_step": params["global_step"]})\n'),
        ),
        "moments-lost": plant((OPTIMIZER, "")),
        "weights-only": plant(
            ("save_checkpoint_steps=STEPS_PER_EPOCH", "save_checkpoint_steps=STEPS_PER_EPOCH, saved_network=net"),
            (EPOCHS, BY_NAME),
        ),
        "batch-skipped": plant(
            (
                LABELS,
                LABELS + "if args.continue_training:  # the batch of the checkpoint is trained\n"
                "    x, y = (np.roll(part, -BATCH * size, axis=0) for part in (x, y))\n",
            ),
        ),
        "schedule-restarted": plant(
            (OPTIMIZER, OPTIMIZER + "    opt.learning_rate.set_data(ms.Tensor(0.025, ms.float32))  # warms up\n"),
        ),
        "older-checkpoint": plant(
            (
                NEWEST,
                'older, last = sorted(glob.glob(os.path.join(args.ckpt_dir, "*.ckpt")), key=os.path.getmtime)[-2:]',
            ),
            ("ms.load_checkpoint(last)", "ms.load_checkpoint(older)  # the newest may be cut off"),
            (EPOCHS, BY_NAME),
            options=("--fault-step=10",),
        ),
        "parameter-lost": plant(
            (LOADS, '    del params["2.bias"]  # the head is a new one\n' + LOADS),
        ),
        "rounded-save": plant(
            ("\ndone_epochs = 0\n", f"\n\n{CLASS}done_epochs = 0\n"),
        ),
    },
)
