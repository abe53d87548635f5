"""Defects of a job of PyTorch, put into its ranks while they run."""

from __future__ import annotations

from chaos.selftest.defect import Defect, ExpectedVerdict

RESTARTED, RESUMED = "live-torch-elastic", "live-torch-resume"


def _defect(
    name: str, what: str, base: str, inside: str, check: str, *reason: str, verdict: ExpectedVerdict = "fail"
) -> Defect:
    """Return a defect of the job itself. ``inside`` is a function of chaos.selftest.live.torch_job."""
    return Defect(name, what, "job", base, check, reason, verdict, inside=f"chaos.selftest.live.torch_job:{inside}")


DEFECTS = (
    _defect(
        "torch-job-loses-moments",
        "The ranks that torchrun has started again restore all of the optimizer but its moments.",
        RESTARTED,
        "moments_lost",
        "resume",
        "after recovery 1 rank 0 held another state than that of step 4",
        "optimizer.exp_avg.0",
    ),
    _defect(
        "torch-job-loses-counters",
        "The job that is started again counts AdamW's steps from 0.",
        RESUMED,
        "counters_lost",
        "resume",
        "4 of 16 parameters of rank 0 are not the file's: optimizer.step.0",
    ),
    _defect(
        "torch-job-loses-a-weight",
        "Rank 1 alone does not restore one bias.",
        RESUMED,
        "one_weight_lost",
        "resume",
        "1 of 16 parameters of rank 1 are not the file's: 3.bias",
    ),
    _defect(
        "torch-job-restarts-schedule",
        "The schedule of the learning rate begins anew, and everything else is restored.",
        RESUMED,
        "schedule_from_its_beginning",
        "loss",
        "the optimizer's numbers (learning rate and others) are the fault-free run's",
        "first at rank 0, step 6: optimizer.0.lr is ",
    ),
    _defect(
        "torch-job-loses-random-state",
        "The ranks that torchrun has started again drop other activations than the fault-free run does.",
        RESTARTED,
        "random_state_lost",
        "loss",
        "every loss equals the fault-free run's, bit for bit",
        "step 5",
    ),
    _defect(
        "torch-job-skips-a-batch",
        "The ranks that torchrun has started again leave one batch of the data out.",
        RESTARTED,
        "batch_skipped",
        "resume",
        "trained another batch at step 5: the baseline's batch of step 6, so a batch was skipped",
    ),
    _defect(
        "torch-job-shuffles-anew",
        "The job that is started again shuffles the data with another seed.",
        RESUMED,
        "shuffled_anew",
        "resume",
        "rank 0 trained another batch at step 5",
    ),
    _defect(
        "torch-job-swaps-shares",
        "Ranks 0 and 1 read each other's share of the data after the restart.",
        RESTARTED,
        "shares_swapped",
        "resume",
        "rank 0 trained another batch at step 5, which the baseline never trained on this rank",
    ),
    _defect(
        "torch-job-loads-an-older-file",
        "The ranks that torchrun has started again load the checkpoint before the newest one.",
        RESTARTED,
        "older_checkpoint",
        "mechanism",
        "rank 0 read no checkpoint of step 4, but of step 2",
    ),
    _defect(
        "torch-job-resumes-from-an-older-file",
        "The job that is started again loads the checkpoint before the newest one.",
        RESUMED,
        "older_checkpoint",
        "resume",
        "training goes on at step 5",
        "step 2 was saved, so the next is step 3",
    ),
    _defect(
        "torch-job-saves-the-step-before",
        "Each save holds the state of the save before, under the number of its own step.",
        RESTARTED,
        "save_of_the_step_before",
        "checkpoint",
        "16 of 16 parameters in rank 0's file of step 4 differ",
    ),
    _defect(
        "torch-job-saves-no-optimizer",
        "The checkpoints hold the weights, and nothing of the optimizer.",
        RESUMED,
        "save_without_optimizer",
        "checkpoint",
        "lacks optimizer state: optimizer.",
    ),
    _defect(
        "torch-job-replica-drifts",
        "After the restart a weight of rank 1 leaves those of its replicas.",
        RESTARTED,
        "replica_drifts",
        "consistency",
        "ranks 0 and 1 disagree after step 5 of attempt train: 0.weight",
    ),
)
