"""A run's directory that was written by hand, made to be one of this user's own: with proofs of what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.history.jsonl import decode, encode
from chaos.history.ledger import Ledger
from chaos.history.seal import Seal
from chaos.store.directory import DEVICE, DIRECTORY, INODE, LEDGER_FILE, OWNER, RUN_FILE, write_json
from chaos.store.host import HOST, this_host
from chaos.store.key import seal_of


def prove(run_dir: Path, described: Mapping[str, Any]) -> Ledger:
    """Describe the run as one that was made here, and give what its ledger holds its proofs. Returns the ledger."""
    seal, there = seal_of(described["token"]), run_dir.stat()
    place = {DIRECTORY: str(run_dir.resolve()), INODE: there.st_ino, DEVICE: there.st_dev, OWNER: there.st_uid}
    write_json(run_dir / RUN_FILE, seal.document({**described, HOST: this_host(), **place}))
    _prove_lines(run_dir / LEDGER_FILE, seal)
    return Ledger(run_dir / LEDGER_FILE, seal)


def _prove_lines(path: Path, seal: Seal) -> None:
    if not path.exists():
        return
    before, made = b"", []
    for line in path.read_bytes().splitlines():
        before = encode(seal.line(decode(line), before))
        made.append(before)
    path.write_bytes(b"".join(made))
