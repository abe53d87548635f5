"""Keys of a configuration that are probably misspelt: MindFormers ends at some of them and passes others over.

Source: MindFormers, mindformers/tools/register/template.py (1.5 to 2.1): unknown keys of these sections end the job, at
the top they have no effect. The keys of a version are read from its own sources if they are available.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from itertools import islice
from types import MappingProxyType

from chaos.jobs.mindformers.configuration import Configuration, is_off
from chaos.jobs.mindformers.version import Release
from chaos.scenario.errors import Problem, printable, quote


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SECTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "runner_config": _words(
            "batch_size epochs gradient_accumulation_steps num_classes sink_mode sink_size stop_step"
        ),
        "parallel_config": _words(
            "context_parallel context_parallel_algo data_parallel expert_parallel gradient_aggregation_group mem_coeff "
            "micro_batch_num model_parallel optimizer_shard pipeline_stage seq_split_num ulysses_degree_in_cp "
            "use_seq_parallel vocab_emb_dp"
        ),
        "monitor_config": _words(
            "check_for_global_norm device_local_loss_format device_local_norm_format dump_path health_checkpoint "
            "invert global_norm_spike_count_threshold global_norm_spike_threshold local_loss_format local_norm_format "
            "max_attention_logit_format monitor_on optimizer_state_format print_struct stable_rank_config "
            "step_interval target throughput_baseline weight_state_format"
        ),
    }
)
"""Sections with all keys that any of these versions has in them."""

TOP = _words(
    "seed output_dir use_parallel run_mode runner_config parallel_config parallel callbacks monitor_config context "
    "checkpoint load_checkpoint load_ckpt_format resume_training only_save_strategy use_legacy use_legacy_format "
    "use_skip_data_by_global_norm eval_callbacks ckpt_use_legacy_format"
)
"""Keys at the top that matter to a plan, and similar keys."""

_ALIKE = 0.85
"""Share of two words that must agree, in order, for one to be a misspelling of the other."""


_MOST = 1000
"""Most keys of one mapping that are checked."""


def misspelt(configuration: Configuration, release: Release) -> Iterator[Problem]:
    """Yield unknown keys that nearly match a key of the plan, and all unknown keys at which this MindFormers ends.

    Without its sources the latter are unknown, and only the former are given.
    """
    for key, value in islice(configuration.root.data.items(), _MOST):
        if isinstance(key, str) and (suggestion := _meant(key, TOP)):
            message = f"there is no key {quote(key)}: MindFormers ignores it"
            yield value.problem(message, f"did you mean {quote(suggestion)}?")
    for section, known in {**SECTIONS, **release.checked}.items():
        inside = configuration.get(section)
        held = inside.data if inside is not None and isinstance(inside.data, dict) else {}
        if section == "moe_config" and _of_the_new_kind(configuration):
            continue
        for key, value in islice(held.items(), _MOST):
            suggestion = _meant(key, known) if isinstance(key, str) else None
            if suggestion is None and (section not in release.checked or key in known):
                continue
            shown = printable(str(key))
            message = f"MindFormers ends with 'The config '{section}' gets an unexpected key: {shown}' (1.5 to 2.1)"
            yield value.problem(
                message, f"did you mean {quote(suggestion)}?" if suggestion else _ELSEWHERE.get(shown, "take it out")
            )


def _of_the_new_kind(configuration: Configuration) -> bool:
    """Return whether the model is of the new kind, for which MindFormers does not read ``moe_config``."""
    return is_off(configuration.get("use_legacy"))


_ELSEWHERE = MappingProxyType(
    {
        "tensor_parallel": "use model_parallel, which is what it is called here",
        "health_checkpoint": "use check_for_global_norm and global_norm_spike_threshold, or MindFormers 2.1",
    }
)
"""Advice for keys that have another name here, by the key."""


def unread(configuration: Configuration) -> Iterator[Problem]:
    """Yield a configuration of another form, without any section that describes a training here."""
    if any(configuration.get(key) is not None for key in (*_DESCRIBING, *_PYNATIVE)):
        return
    first = next((value for value in configuration.root.data.values() if isinstance(value.data, dict)), None)
    yield (first or configuration.root).problem(
        f"none of {', '.join(_DESCRIBING)} is in this configuration, so what it trains, and on how many ranks, is not "
        "read: MindFormers 1.0 to 2.1 describe a job by these sections",
        "name a configuration of this form; that of an unreleased MindFormers is not planned by this version",
    )


_DESCRIBING = ("runner_config", "parallel_config", "trainer", "callbacks")
_PYNATIVE = ("training", "parallelism")
"""Sections of the PyNative trainer, which another rule refuses."""


def _meant(word: str, known: frozenset[str]) -> str | None:
    if word in known or len(word) > 100:
        return None
    near = [key for key in known if abs(len(key) - len(word)) <= 3 and len(set(key) ^ set(word)) <= 3]
    alike = {key: SequenceMatcher(None, word, key).ratio() for key in near}
    best = max(sorted(alike), key=alike.__getitem__, default=None)
    return best if best is not None and alike[best] >= _ALIKE else None
