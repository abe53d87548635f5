"""Stands for a user's checkout of MindFormers: its program, over the package that is installed."""

from __future__ import annotations

import argparse

from mindformers import Trainer, build_context
from mindformers.tools.register import MindFormerConfig
from mindformers.utils.file_utils import set_output_path

parser = argparse.ArgumentParser()
parser.add_argument("--config", required=True)
configuration = MindFormerConfig(parser.parse_args().config)
set_output_path(configuration.output_dir)
build_context(configuration)
Trainer(configuration).train()
