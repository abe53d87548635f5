"""Bugs in ``own-loop``: it resumes at the end of an epoch, whose number is in the file's name."""

from tests.planted.plant import PlantedJob, plant

LOAD = '        saved = mindspore.load_checkpoint(os.path.join(OUT, f"epoch-{start}.ckpt"))\n'
OPTIMIZER = "        mindspore.load_param_into_net(optimizer, saved)\n"
LOADS = "        mindspore.load_param_into_net(net, saved)\n" + OPTIMIZER
BOTH = "[*net.get_parameters(), *optimizer.get_parameters()]"
SAVES = "    mindspore.save_checkpoint(unique,"
EPOCH = "    for epoch in range(start + 1, EPOCHS + 1):\n"
DRAWS = "def batches(epoch, rank):\n    rng = np.random.RandomState(1000 * epoch + rank)\n"

SKIPS = """def batches(epoch, rank, done):
    rng = np.random.RandomState(1000 * epoch + rank)
    rng.randn(done, 6, 12)  # batches that are trained already
"""

WARM_UP = """        if start:
            rate = 0.02 * min(1, (epoch - start) / 2)
            optimizer.learning_rate.set_data(Tensor(rate, mindspore.float32))
"""

ROUNDED = """    for part in unique:
        if part["name"] in net.parameters_dict():
            part["data"] = part["data"].astype(mindspore.float16).astype(mindspore.float32)
"""

JOB = PlantedJob(
    "own-loop",
    "main.py",
    {
        "nothing-loaded": plant((LOADS, '        print(f"going on after epoch {start}")\n')),
        "moments-lost": plant((OPTIMIZER, "")),
        "weights-only": plant((BOTH, "net.get_parameters()")),
        "batch-skipped": plant(
            (DRAWS, SKIPS), ("batches(epoch, get_rank())", "batches(epoch, get_rank(), int(start > 0))")
        ),
        "schedule-restarted": plant((EPOCH, EPOCH + WARM_UP)),
        "older-checkpoint": plant((LOAD, LOAD.replace("{start}", "{max(start - 1, 1)}")), options=("--fault-step=12",)),
        "parameter-lost": plant((LOADS, '        saved.pop("body.2.bias")\n' + LOADS)),
        "rounded-save": plant((SAVES, ROUNDED + SAVES)),
    },
)
