"""The readers of PyTorch's files, and the agent's digests, against PyTorch itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaos.agent.digests import Sampler, array_digest, array_of
from chaos.observe.checkpoints.checkpoint import CheckpointNotSupported, read_checkpoint
from chaos.observe.checkpoints.tensor import STORAGE, TensorContent

torch = pytest.importorskip("torch", reason="torch is not installed here")


def digest(tensor: Any) -> str:
    """The digest that the agent records for a tensor in a rank."""
    return array_digest(array_of(tensor))


def tensors() -> dict[str, Any]:
    """Tensors of every type and layout that a checkpoint may hold."""
    generator = torch.Generator().manual_seed(7)
    base = torch.randn(6, 4, generator=generator)
    made = {
        "plain": base,
        "turned": base.t(),
        "row": base[2],
        "column": base[:, 1],
        "tied": base,
        "repeated": base[:1].expand(5, 4),
        "channels_last": torch.randn(2, 3, 4, 4, generator=generator).to(memory_format=torch.channels_last),
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(2.5),
        "parameter": torch.nn.Parameter(base.clone()),
    }
    for name in sorted(STORAGE):
        kind = getattr(torch, name)
        values = torch.randint(0, 2, (3, 2), generator=generator)
        made[name] = values.to(kind) if name == "bool" else (values + 1).to(torch.float32).to(kind)
        made[f"{name}_scalar"] = made[name][0, 0]
    return made


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_digests_of_files_are_those_of_the_tensors_in_a_rank(tmp_path: Path, protocol: int) -> None:
    state = tensors()
    torch.save({"model": state}, tmp_path / "a.pt", pickle_protocol=protocol)
    checkpoint = read_checkpoint(tmp_path / "a.pt")
    assert checkpoint.crc == "verified"
    assert {name: tensor.digest for name, tensor in checkpoint.tensors.items()} == {
        name: digest(tensor) for name, tensor in state.items()
    }
    assert {name: tensor.finite for name, tensor in checkpoint.tensors.items()} == dict.fromkeys(
        checkpoint.tensors, True
    )


def test_a_conjugated_tensor_has_a_digest_in_a_rank_and_its_file_is_unknown(tmp_path: Path) -> None:
    tensor = torch.tensor([1 + 2j]).conj()
    assert digest(tensor) == digest(torch.tensor([1 - 2j]))
    torch.save(tensor, tmp_path / "a.pt")
    with pytest.raises(CheckpointNotSupported, match="conjugated"):
        read_checkpoint(tmp_path / "a.pt")


@pytest.mark.parametrize("name", [name for name in sorted(STORAGE) if name.startswith("float8")])
def test_the_bytes_of_8_bit_floats_that_are_no_numbers_are_pytorchs(name: str) -> None:
    for byte in range(256):
        content = TensorContent("w", name, (1,))
        content.take(bytes([byte]))
        value = torch.tensor([byte], dtype=torch.uint8).view(getattr(torch, name)).float()
        assert content.tensor().finite == bool(torch.isfinite(value).all()), byte


def test_a_type_that_numpy_lacks_has_samples_too() -> None:
    values = {"w": array_of(torch.tensor([1.5, -2.0], dtype=torch.bfloat16))}
    expected = {"w": np.array([1.5, -2.0], np.float32)}
    assert Sampler(1).samples(values.items()) == Sampler(1).samples(expected.items())


@pytest.mark.parametrize(
    ("make", "updates"),
    [
        (lambda parameters: torch.optim.AdamW(parameters), 3),
        (lambda parameters: torch.optim.Adam(parameters, amsgrad=True, foreach=True), 3),
        (lambda parameters: torch.optim.Adagrad(parameters), 3),
        (lambda parameters: torch.optim.SGD(parameters, momentum=0.9, lr=0.1), None),
    ],
)
def test_the_updates_of_an_optimizer_are_found(tmp_path: Path, make: Callable[[Any], Any], updates: int | None) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = make(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3, "rng": torch.get_rng_state()}
    torch.save(state, tmp_path / "a.pt")
    checkpoint = read_checkpoint(tmp_path / "a.pt")
    assert (checkpoint.about_save or {}).get("global_step") == updates
    assert checkpoint.number("script_step") == 3


def test_a_whole_module_is_read_without_its_class(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(3, 2), tmp_path / "a.pt")
    assert set(read_checkpoint(tmp_path / "a.pt").tensors) == {"_parameters.weight", "_parameters.bias"}


def test_what_is_not_read_is_unknown(tmp_path: Path) -> None:
    module = torch.nn.Linear(3, 2)
    torch.save(module.state_dict(), tmp_path / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.jit.script(module).save(str(tmp_path / "script.pt"))
    torch.save(torch.eye(3).to_sparse(), tmp_path / "sparse.pt")
    torch.save(torch.empty(3, device="meta"), tmp_path / "meta.pt")
    torch.save(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), tmp_path / "quantized.pt")
    for name in ("legacy", "script", "sparse", "meta", "quantized"):
        with pytest.raises(CheckpointNotSupported):
            read_checkpoint(tmp_path / f"{name}.pt")


def test_a_file_saved_without_crcs_is_read(tmp_path: Path) -> None:
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.ones(3)}, tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    checkpoint = read_checkpoint(tmp_path / "a.pt")
    assert (checkpoint.crc, checkpoint.tensors["w"].digest) == ("absent", digest(torch.ones(3)))


def test_the_reader_needs_no_torch(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(3)}, tmp_path / "a.pt")
    code = (
        "import sys; from pathlib import Path; from chaos.observe.checkpoints.checkpoint import read_checkpoint\n"
        f"print(list(read_checkpoint(Path({str(tmp_path / 'a.pt')!r})).tensors), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "['w'] False"
