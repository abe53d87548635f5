"""Keys that stand in a kubeconfig are on no disk besides, so none is left when the harness is killed."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

import pytest

from chaos.platforms.kubernetes.api import NoKubernetes, connect

pytest.importorskip("kubernetes")

KUBECONFIG = """apiVersion: v1
kind: Config
current-context: trial
contexts: [{{name: trial, context: {{cluster: trial, user: trial}}}}]
clusters: [{{name: trial, cluster: {{server: "https://127.0.0.1:1", certificate-authority-data: {authority}}}}}]
users: [{{name: trial, user: {{client-certificate-data: {certificate}, client-key-data: {key}}}}}]
"""
WORDS = {name: f"of the {name}" for name in ("authority", "certificate", "key")}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are made."""
    directory = tmp_path / "tmp"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


def test_no_key_is_left_in_a_file(temporary: Path, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    told = {name: base64.b64encode(text.encode()).decode() for name, text in WORDS.items()}
    file.write_text(KUBECONFIG.format(**told))
    first, second = connect(None, file), connect("trial", file)
    assert list(temporary.iterdir()) == []
    for api in (first, second):
        seen = api.client.configuration
        assert Path(seen.ssl_ca_cert).read_text() == WORDS["authority"]
        assert Path(seen.cert_file).read_text() == WORDS["certificate"]
        assert [Path(seen.key_file).read_text() for _ in range(2)] == [WORDS["key"]] * 2


def test_files_that_the_kubeconfig_names_stay_what_they_are(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("mine")
    file = tmp_path / "kubeconfig"
    user = "users: [{name: trial, user: {}}]"
    text = KUBECONFIG.format(authority="X", certificate="X", key="X").replace(
        "certificate-authority-data: X", f"certificate-authority: {tmp_path}/ca.crt"
    )
    file.write_text("\n".join([*(one for one in text.splitlines() if not one.startswith("users")), user]))
    assert connect(None, file).client.configuration.ssl_ca_cert == str(tmp_path / "ca.crt")
    assert list(temporary.iterdir()) == []


def test_a_context_that_is_not_there_is_told(temporary: Path, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG.format(authority="YQ==", certificate="YQ==", key="YQ=="))
    with pytest.raises(NoKubernetes, match="no cluster can be reached"):
        connect("other", file)
    assert list(temporary.iterdir()) == []
