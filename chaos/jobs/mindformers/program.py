"""Train a configuration of MindFormers with the installed package.

The wheel has no ``run_mindformer.py``; this program does the same for ``run_mode: train``. It runs in the ranks
and imports nothing of chaos. The places of MindFormers' functions are those of 1.0 to 2.1.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

_OUTPUT_PATH = ("mindformers.utils.file_utils", "mindformers.tools.utils", "mindformers.tools")


def main() -> None:
    """Train. Raises the errors of MindFormers."""
    parser = argparse.ArgumentParser(description="Train with MindFormers.")
    parser.add_argument("--config", required=True, help="the job's configuration, a YAML file")
    path = parser.parse_args().config

    from mindformers import Trainer, build_context
    from mindformers.tools.register import MindFormerConfig

    configuration = MindFormerConfig(path)
    _output_path()(configuration.output_dir)
    build_context(configuration)
    Trainer(configuration).train()


def _output_path() -> Any:
    for name in _OUTPUT_PATH:
        try:
            return import_module(name).set_output_path
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"MindFormers has no function set_output_path in any of {', '.join(_OUTPUT_PATH)}")


if __name__ == "__main__":
    main()
