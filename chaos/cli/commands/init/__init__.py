"""``chaos init``: a first scenario for the job in a directory, or an example of a job with its scenario."""

from chaos.cli.commands.init.writing import command

__all__ = ["command"]
