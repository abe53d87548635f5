"""Reader of the lines that MindFormers itself writes: losses, steps, progress, checkpoints, resuming."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.observe.logs.framework_prefix import match_mindformers, time_of
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.losses.step_fields import bar_fields, step_fields
from chaos.observe.logs.losses.training_line import TrainingLine, decimals, read_training_line, step_of_line
from chaos.observe.logs.patterns import find_event, known

STEP = "train.step"
PROGRESS = "train.progress"

_TABLE = (
    known(
        "checkpoint.written",
        "sync saved checkpoint",
        r"^successfully (?P<mode>a?sync) saved checkpoint from step '(?P<step>\d{1,18})' to",
    ),
    known(
        "checkpoint.written",
        "Checkpoint saved at",
        r"^Checkpoint saved at step (?P<step>\d{1,18}) to (?P<path_text>.{1,4000}) \(",
    ),
    known("checkpoint.begin", "aving ckpt......", r"^\.{6}Saving ckpt\.{6}$"),
    known("checkpoint.begin", "Start to save checkpoint", r"^\.{6} Start to save checkpoint \.{6}$"),
    known("checkpoint.holds", "epoch_num: ", r"^epoch_num: (?P<epoch>\d{1,18})$"),
    # MindFormers adds the step that it was resumed from, so neither begins again with an epoch.
    known("checkpoint.holds", "step_num: ", r"^(?P<what>step_num): (?P<step>\d{1,18})$"),
    known("checkpoint.holds", "global_step: ", r"^(?P<what>global_step): (?P<step>\d{1,18})$"),
    known("checkpoint.holds", "global_batch_size: ", r"^global_batch_size: (?P<batch_size>\d{1,18})$"),
    known(
        "checkpoint.directory",
        "At current iteration",
        r"^At current iteration '(?P<step>\d{1,18})', the weight will be saved in: '(?P<path_text>[^']{1,4000})'",
    ),
    known(
        "checkpoint.file",
        "checkpoint successfully saved at",
        r"^(?:Non-redundancy )?(?P<what>\w{1,40}) checkpoint successfully saved at '(?P<path_text>[^']{1,4000})'",
    ),
    known(
        "checkpoint.file",
        "successfully saved at:",
        r"^'(?P<what>common\.json)' successfully saved at: '(?P<path_text>[^']{1,4000})'",
    ),
    known(
        "checkpoint.file",
        "saved successfully at",
        r"^The '(?P<what>metadata\.json)'(?: of non-redundancy weight)? saved successfully at "
        r"'(?P<path_text>[^']{1,4000})'",
    ),
    known("checkpoint.tracker", "tracker file to", r"^save checkpoint tracker file to (?P<path_text>\S.{0,4000})"),
    known(
        "checkpoint.interval",
        "Checkpoints will be saved",
        r"^Checkpoints will be saved every (?P<interval>\d{1,18}) steps starting from step (?P<start>\d{1,18}), "
        r"first save at step (?P<first>\d{1,18})",
    ),
    known("checkpoint.final", "Final checkpoint saved", r"^Training completed\. Final checkpoint saved"),
    known("checkpoint.failed", "Error saving checkpoint", r"^Error saving checkpoint: (?P<why_text>.{0,1000})"),
    known("checkpoint.load_begin", "Start Load Checkpoint", r"^\.+Start Load Checkpoint\.+$"),
    known("checkpoint.load_begin", "Loading checkpoint from", r"^Loading checkpoint from: (?P<path_text>\S.{0,4000})"),
    known(
        "checkpoint.load_begin",
        "Start load checkpoint from",
        r"^\.+Start load checkpoint from (?P<format>ckpt|safetensors)\.+$",
    ),
    known("checkpoint.load_begin", "Begin to load ckpt", r"^Begin to load ckpt$"),
    known("checkpoint.load_end", "End to load ckpt", r"^End to load ckpt, param_dict\.size=(?P<parameters>\d{1,18})"),
    known(
        "checkpoint.reads", "heckpoint f", r"^(?:load checkpoint file:|Load checkpoint from) (?P<path_text>\S.{0,4000})"
    ),
    known("checkpoint.reads", "Get checkpoint: ", r"^Get checkpoint: (?P<path_text>\S.{0,4000})"),
    known("checkpoint.reads", "Loading common info", r"^Loading common info from '(?P<path_text>[^']{1,4000})'"),
    known(
        "checkpoint.parameters",
        "are loaded.",
        r"^All (?P<what>Network|Checkpoint|Optimizer) (?:parameters|weights) are (?P<state>loaded)\.$",
    ),
    known(
        "checkpoint.parameters",
        "are not loaded",
        r"^(?P<what>Network|Optimizer) parameters are (?P<state>not loaded): (?P<names_text>.{0,4000})",
    ),
    known("checkpoint.part_begin", "Start saving ", r"^\.+ Start saving (?P<what_text>[\w. ]{1,100}?) \.+$"),
    known(
        "checkpoint.part_begin",
        "Saving common info",
        r"^Saving (?P<what_text>common info) to '(?P<path_text>[^']{1,4000})'",
    ),
    known("checkpoint.no_metadata", "No need to save metadata", r"^No need to save metadata\.json for single card"),
    known("checkpoint.finalised", "execute finalize func", r"^Rank_(?P<rank>\d{1,9}) execute finalize func"),
    known(
        "checkpoint.root",
        "root path of saved",
        r"^The root path of saved checkpoints is: '(?P<path_text>[^']{1,4000})'",
    ),
    known("checkpoint.load_end", "Checkpoint Finished", r"^\.+Loading (?:Hugging Face )?Checkpoint Finished\.+$"),
    known("checkpoint.cost", "Save checkpoint cost time", r"^Save checkpoint cost time: (?P<seconds>[\d.]{1,30})s"),
    known("checkpoint.loaded", "Loading Time Cost", r"^\.*Loading Time Cost: (?P<seconds>[\d.]{1,30}) s"),
    known("checkpoint.latest", "latest valid iteration", r"^The latest valid iteration is '?(?P<step>\d{1,18})"),
    known("resume.base", "Basic resume checkpoint", r"^Basic resume checkpoint: ?(?P<path_text>\S.{0,4000})"),
    known("resume.chosen", "Get resume checkpoint", r"^Get resume checkpoint: ?(?P<path_text>\S.{0,4000})"),
    known(
        "resume.chosen",
        "Get resume checkpoint from",
        r"^Get resume checkpoint from (?P<path_text>\S.{0,4000})",
    ),
    known("resume.asked", "Specify resume checkpoint", r"^Specify resume checkpoint: ?(?P<path_text>\S.{0,4000})"),
    known("resume.candidates", "resume-able checkpoints", r"^Find resume-able checkpoints as follow"),
    known("resume.candidate", "/", r"^(?P<path_text>/\S{1,4000}-\d{1,9}_\d{1,9}\.(?:ckpt|safetensors))$"),
    known("resume.step", "Set global_step", r"^Set global_step from (?P<before>\d{1,18}) to: (?P<step>\d{1,18})"),
    known(
        "resume.batch_changed",
        "global batch size is changed",
        r"^Detect global batch size is changed from (?P<before>\d{1,18}) to (?P<after>\d{1,18}), "
        r"scale: (?P<scale>[\d.]{1,30})",
    ),
    known("tft.off", "tft is not valid", r"^tft is not valid$"),
    known(
        "train.phase",
        "...",
        r"^\.{6,20}(?P<what>Build (?:Dataset|Net|Optimizer|Running Wrapper From Config|Callbacks) For Train"
        r"|Init (?:Config|Model)|Starting Init Train Model|Model Compiling|Starting Training Model|Training Over)",
    ),
    known("train.dataset", "dataset finish", r"^Create training dataset finish, dataset size:(?P<batches>\d{1,18})"),
    known(
        "train.epochs",
        "Will be Training",
        r"^Will be Training epochs:(?P<epochs>\d{1,18}), sink_size:(?P<sink>-?\d{1,18})",
    ),
    known("resume.healthy", "Load healthy checkpoint", r"^Load healthy checkpoint: (?P<path_text>\S.{0,4000})"),
    known(
        "resume.passed_over",
        "is_health is ",
        r"^Skipping (?P<path_text>\S.{0,4000}?), is_health is (?P<healthy_text>\w{1,20})",
    ),
    known(
        "resume.data_skipped",
        "Resume dataset (",
        r"^Resume dataset \((?P<mode_text>[^)]{1,60})\): skip (?P<batches>\d{1,18}) micro-batches "
        r"\(consumed_samples=(?P<samples>\d{1,18}), global_step=(?P<step>\d{1,18})",
    ),
    known(
        "resume.step",
        "Scaled global step",
        r"^Scaled global step: (?P<before>\d{1,18}) (?:->|\u2192) (?P<step>\d{1,18})",
    ),
    known(
        "skip.step",
        "[SkipStepOnNaN] Global",
        r"^\[SkipStepOnNaN\] Global gradient norm is (?P<norm_text>\S{1,40}) at step (?P<step>\d{1,18}), skipping",
    ),
    known(
        "checkpoint.written",
        "Finish saving network",
        r"^Finish saving network of epoch (?P<epoch>\d{1,18}) step (?P<step_in_epoch>\d{1,18}) using",
    ),
    known(
        "train.monitored",
        "step:[",
        r"^step:\[ *(?P<step>\d{1,9})/ *\d{1,9}\] (?P<what_text>[^:]{1,200}): (?P<value_text>.{0,400})",
    ),
    known("resume.no_meta", "No meta.json available", r"^No meta\.json available"),
    known(
        "resume.begin",
        "Start ",
        r"^\.+Start (?:load resume context|resume training) from (?P<source>[a-z]{1,40}(?:\.json)?)\.{1,80}$",
    ),
    known("resume.from", "initial epoch", r"^initial epoch: (?P<epoch>\d{1,18})$"),
    known("resume.from", "initial step", r"^initial step: (?P<step>\d{1,18})$"),
    known("resume.data_kept", "ignore dataset skip", r"^ignore dataset skip"),
    known("resume.nothing", "No checkpoint could be resumed", r"^No checkpoint could be resumed"),
    known("resume.data_skipped", "dataset skip", r"^dataset skip (?P<steps>\d{1,18}) steps"),
    known(
        "train.last_stage_only", "pipeline stages:", r"^pipeline stages: (?P<stages>\d{1,9}) > 1, the loss on the last"
    ),
    known("train.first_rank_only", "zero_bubble_v", r"^When zero_bubble_v is enabled, loss is valid only on rank 0"),
    known("tre.barrier", "Call barrier before", r"^Call barrier before throw TREError"),
    known("tre.synchronised", "All stream execution", r"^All stream execution completed"),
    known(
        "skip.step",
        "is_skip:",
        r"^opt_global_step: (?P<step>\d{1,18}), skip_data_grad_norm_threshold: (?P<threshold>[-+.\deE]{1,40}), "
        r"is_skip: \[? ?(?P<skipped>True|False)",
    ),
    known(
        "skip.repeated",
        "consecutive times greater than threshold",
        r"^Current global norm \[?(?P<norm>[-+.\deEinfa]{1,40})\]? (?:of step (?P<step>\d{1,18}) )?has been "
        r"(?P<times>\d{1,18}) consecutive times greater than threshold:? ?(?P<threshold>[-+.\deE]{1,40})"
        r"(?![-+.\deE]|, stop training)",
    ),
    known(
        "train.monitored",
        "Epoch:[",
        r"^Epoch:\[ *(?P<epoch>\d{1,9})/ *\d{1,9}\], step:\[ *(?P<step_in_epoch>\d{1,9})/ *\d{1,9}\] "
        r"(?P<what_text>[^:]{1,200}): (?P<value_text>.{0,400})",
    ),
)

MESSAGES = _TABLE
"""Messages behind the prefix of a line."""


class MindFormersLogReader(LogReader):
    """Lines of MindFormers 1.x and 2.x. ``tz`` is the zone of the times in the log, None the local one.

    ``train.step`` is the line of a step: its ``step`` counts over the whole job, ``loss_text`` is as printed, ``loss``
    the number (None on a rank that has none), ``places`` the digits after its decimal point. ``step_ms``, ``lr``,
    ``loss_scale``, ``global_norm``, ``tflops_per_npu``, ``consumed_samples`` and ``global_batch_size`` are present if
    the line has them as numbers, ``overflow`` if the line has it. A norm in brackets that is no single number is in
    ``global_norm_text``. Separate losses (``lm_loss``, ``load_balancing_loss``, ``mtp_loss``, ``indexer_loss``) are
    fields of these names. ``train.progress`` has ``percent``, ``samples_per_second_per_npu`` and ``left_text``.
    """

    name = "mindformers"
    own_rank = True

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether MindFormers' own prefix is among the lines."""
        return any(match_mindformers(line) for line in first_lines)

    def read(self, line: str) -> LogEvent | None:
        """Return the event of a line, None if its form is unknown."""
        parts = read_training_line(line)
        if parts is not None:
            return self._step(line, parts)
        prefix = match_mindformers(line)
        if prefix is None:
            return None
        return find_event(_TABLE, line[prefix.end() :], self._time(line, time_of(prefix)), None)

    def _step(self, line: str, parts: TrainingLine) -> LogEvent | None:
        wall_ns = self._time(line, parts.time)
        if parts.step is None:
            return LogEvent(PROGRESS, wall_ns, fields=bar_fields(line, parts))
        step = step_of_line(line, parts)
        if step is None:
            return None
        text = None if parts.loss is None else line[slice(*parts.loss)]
        fields: dict[str, object] = {"loss_text": text, "loss": None, "places": -1}
        if text is not None:
            fields |= {"loss": float(text), "places": decimals(text)}
        fields |= step_fields(line, parts)
        return LogEvent(STEP, wall_ns, None, step, None, fields)

    def _time(self, line: str, at: int | None) -> int | None:
        """Return the nanoseconds of ``2026-11-21 01:27:12,420`` at this place."""
        if at is None:
            return None
        return self._wall.ns(line[at : at + 10], line[at + 11 : at + 19], int(line[at + 20 : at + 23]) * 1000)
