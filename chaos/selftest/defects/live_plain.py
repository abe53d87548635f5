"""Defects of a job in plain Python: a resume or a repair that leaves out a part of the state."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="random-state-not-restored",
        what="The resumed job does not restore its random state: the dropout begins anew.",
        layer="job",
        base="live-plain-ttp",
        check="resume",
        reason=("parameters of rank 0 are not the file's", "random_state"),
        inside="chaos.selftest.live.plain:random_state_lost",
    ),
    Defect(
        name="learning-rate-not-restored",
        what="The resumed job does not restore its learning rate: the schedule begins anew.",
        layer="job",
        base="live-plain-ttp",
        check="resume",
        reason=("parameters of rank 0 are not the file's", "learning_rate"),
        inside="chaos.selftest.live.plain:learning_rate_lost",
    ),
    Defect(
        name="second-moments-not-restored",
        what="The resumed job does not restore one of the two moments of Adam.",
        layer="job",
        base="live-plain-ttp",
        check="resume",
        reason=("parameters of rank 0 are not the file's", "adam_v."),
        inside="chaos.selftest.live.plain:second_moments_lost",
    ),
    Defect(
        name="random-draws-repeated",
        what="The random state is restored, and the draws come from a generator that begins anew.",
        layer="job",
        base="live-plain-ttp",
        check="loss",
        reason=("first at rank 0, step 5",),
        inside="chaos.selftest.live.plain:draws_repeated",
    ),
    Defect(
        name="order-of-first-epoch-again",
        what="The resumed job reads its data in the order of the first epoch.",
        layer="job",
        base="live-plain-ttp",
        check="resume",
        reason=("trained another batch at step",),
        inside="chaos.selftest.live.plain:order_of_first_epoch",
    ),
    Defect(
        name="random-state-not-copied",
        what="The rank that is repaired draws from the beginning of its random numbers.",
        layer="device layer",
        base="live-plain-uce",
        check="resume",
        reason=("rank 1 held another state than that of step 3", "random_state"),
        inside="chaos.selftest.live.plain:random_state_not_copied",
    ),
    Defect(
        name="moment-correction-not-copied",
        what="The rank that is repaired corrects the bias of its moments as in the first step.",
        layer="device layer",
        base="live-plain-uce",
        check="resume",
        reason=("rank 1 held another state than that of step 3", "beta2_power"),
        inside="chaos.selftest.live.plain:power_not_copied",
    ),
    Defect(
        name="copy-broken-off",
        what="Only the first half of the parameters is copied, and both ranks say that all are.",
        layer="device layer",
        base="live-plain-uce",
        check="resume",
        reason=("rank 1 held another state than that of step 3",),
        inside="chaos.selftest.live.plain:copy_broken_off",
    ),
    Defect(
        name="first-error-hidden",
        what="The rank that lost its memory reports it, and ends by a second error in its own handling.",
        layer="job",
        base="live-plain-uce",
        check="mechanism",
        reason=("rank 1 ended by AttributeError", "behind which is RuntimeError: UCEError"),
        inside="chaos.selftest.live.plain:second_error",
    ),
)
