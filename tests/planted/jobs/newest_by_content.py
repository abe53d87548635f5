"""Bugs in ``newest-by-content``: the job takes its step from the optimizer's count.

A bug that loses the optimizer keeps that count, since the job would begin at its first step otherwise.
"""

from tests.planted.plant import PlantedJob, plant

LOADS = "        ms.load_param_into_net(net, saved)\n        ms.load_param_into_net(optim, saved)\n"
OPTIMIZER = "        ms.load_param_into_net(optim, saved)\n"
COUNT = '        ms.load_param_into_net(optim, {"global_step": saved["global_step"]})\n'
NEWEST = '    return max(found, key=lambda params: int(params["global_step"].asnumpy()[0]), default=None)\n'
STEP = "    step = int(optim.global_step.asnumpy()[0])\n"
SAVED = '[{"name": key, "data": value} for key, value in everything.items()],\n'
FILE = 'os.path.join(FOLDER, f"{uuid.uuid4().hex}.ckpt"),\n'

BEFORE_NEWEST = """    found.sort(key=lambda params: int(params["global_step"].asnumpy()[0]))
    if len(found) > 1:  # the newest may be cut off
        return {**found[-2], "global_step": found[-1]["global_step"]}
    return found[0] if found else None
"""

ROUNDED = """[
                    {"name": key, "data": value.astype(ms.float16).astype(ms.float32) if key in weights else value}
                    for key, value in everything.items()
                ],
"""

JOB = PlantedJob(
    "newest-by-content",
    "job.py",
    {
        "nothing-loaded": plant((LOADS, COUNT)),
        "moments-lost": plant((OPTIMIZER, COUNT)),
        "weights-only": plant(
            ("{**net.parameters_dict(), **optim.parameters_dict()}", "net.parameters_dict()"),
            (FILE, FILE + '                append_dict={"step_num": step},\n'),
            (NEWEST, NEWEST.replace('int(params["global_step"].asnumpy()[0])', 'int(params["step_num"].asnumpy())')),
            (STEP, '    step = 0 if saved is None else int(saved["step_num"].asnumpy())\n'),
        ),
        "batch-skipped": plant(("backward(*data(step))", "backward(*data(step + (saved is not None)))")),
        "schedule-restarted": plant(
            (OPTIMIZER, OPTIMIZER + "        optim.learning_rate.set_data(Tensor(0.05, ms.float32))  # warms up\n"),
        ),
        "older-checkpoint": plant((NEWEST, BEFORE_NEWEST), options=("--fault-step=9",)),
        "parameter-lost": plant((LOADS, '        saved.pop("2.bias")\n' + LOADS)),
        "rounded-save": plant(
            (SAVED, ROUNDED),
            (
                "            ms.save_checkpoint(\n",
                "            weights = net.parameters_dict()\n            ms.save_checkpoint(\n",
            ),
        ),
    },
)
