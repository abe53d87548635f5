"""The values that a save appends to the parameters. Imports nothing, so that a plan or a proof may ask for them."""

from __future__ import annotations

# Written beside the parameters through append_dict (MindSpore 2.10: TFT save handler, ModelCheckpoint, OnRequestExit;
# MindFormers: CheckpointMonitor). The file does not mark them, so they are known by name.
APPENDED = frozenset(
    {
        "epoch_num",
        "step_num",
        "batch_num",
        "cur_rank",
        "global_step",
        "loss_scale",
        "global_batch_size",
        "__exception_save__",
    }
)
