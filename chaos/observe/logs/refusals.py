"""Errors with which MindSpore and MindFormers refuse to start, to save or to load.

Each is the end of a traceback (``ValueError: …``) or the message of a log line, so it stands at the beginning: the
source line that a traceback shows above it, with the same words, is indented. Facts: the source of MindSpore 2.10 and
MindFormers 2.1.
"""

from __future__ import annotations

from chaos.observe.logs.patterns import Known, known

_BEGIN = r"^(?:\w{1,60}(?:Error|Exception): )?"

_REFUSED = (
    ("TFT feature", r"TFT feature doesn't support sink_size > 1"),
    ("TFT feature", r"TFT feature need optimizer or network's optimizer"),
    ("sink_size should be 1", r"sink_size should be 1, got \S{1,40}"),
    ("TFT is not supported", r"TFT is not supported when using (?:ascend910|jit_level == O2)"),
    ("MindIO adapter only", r"MindIO adapter only support on Ascend device but got device \w{1,40}"),
    ("_tft_handler.init", r"Must init by _tft_handler\.init\(config=params\) if use ARF"),
    ("need custom switch", r"MindIO TFT (?:register|regitster) need custom switch on"),
    ("CheckpointMonitor", r"You must set CheckpointMonitor callback for TFT training"),
    (
        "turned on at the same",
        r"The check_for_global_norm and use_skip_data_by_global_norm ?cannot be turned on at the same",
    ),
    # Where there is no NPU, these end a rollback of TRE.
    ("Clean tdt channel", r"Clean tdt channel is not supported"),
    ("Reset parameters", r"Reset parameters is not supported"),
    ("parameters are left in", r"Can't stop device, because training parameters are left in inconsistent state"),
)
_MISSING = (
    ("latest iteration weight", r"Can not find the latest iteration weight path: '(?P<path_text>[^']{1,4000})"),
    ("No common.json", r"No common\.json found in directory '(?P<path_text>[^']{1,4000})"),
    ("common.json", r"Can not find 'common\.json' file at: '(?P<path_text>[^']{1,4000})"),
    ("No checkpoint could", r"(?<=: )No checkpoint could be resumed"),
    ("No tracker file found", r"No tracker file found in load directory: '(?P<path_text>[^']{1,4000})"),
    (
        "No Safetensors files",
        r"Checkpoint directory validation failed: No Safetensors files found in '(?P<path_text>[^']{1,4000})",
    ),
    ("Get resume-able checkp", r"Get resume-able checkpoint failed, due to (?P<why_text>.{0,400})"),
)
_DAMAGED = (
    ("JSON format failed", r"JSON format failed: (?P<why_text>.{0,400})"),
    ("Fail to parse the input", r"Fail to parse the input safetensors: '(?P<path_text>[^']{1,4000})"),
    ("Failed to read the ch", r"Failed to read the checkpoint file '?(?P<path_text>[^', ]{1,4000}?)'?[.,]? "),
    ("Failed to parse safete", r"Failed to parse safetensors JSON header in (?P<path_text>[^:]{1,4000})"),
    ("loaded parameter dict", r"The loaded parameter dict is empty after filter or specif"),
    ("Invalid iteration num", r"Invalid iteration num in (?P<path_text>\S{1,4000})"),
)

REFUSALS: tuple[Known, ...] = (
    *(known("tft.refused", literal, f"{_BEGIN}(?P<why_text>{pattern})") for literal, pattern in _REFUSED),
    *(known("checkpoint.missing", literal, _BEGIN + pattern) for literal, pattern in _MISSING),
    *(known("checkpoint.damaged", literal, _BEGIN + pattern) for literal, pattern in _DAMAGED),
)
"""``tft.refused`` with ``why_text``; ``checkpoint.missing`` and ``checkpoint.damaged`` with the path, if named."""
