"""Keys that stand in a kubeconfig are on no disk besides, so none is left when the harness is killed."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

import pytest

from chaos.platforms.kubernetes.client import credentials
from chaos.platforms.kubernetes.client.api import NoKubernetes, connect

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
    fields = {name: base64.b64encode(text.encode()).decode() for name, text in WORDS.items()}
    file.write_text(KUBECONFIG.format(**fields))
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
    file.write_text("\n".join([*(line for line in text.splitlines() if not line.startswith("users")), user]))
    assert connect(None, file).client.configuration.ssl_ca_cert == str(tmp_path / "ca.crt")
    assert list(temporary.iterdir()) == []


def test_a_context_that_is_not_there_is_told(temporary: Path, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG.format(authority="YQ==", certificate="YQ==", key="YQ=="))
    with pytest.raises(NoKubernetes, match="no cluster can be reached"):
        connect("other", file)
    assert list(temporary.iterdir()) == []


PLUGIN = """#!/bin/sh
echo once >> {asked}
n=$(wc -l < {asked})
cat <<END
{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
 "status": {{"token": "token-$n", "expirationTimestamp": "2020-01-01T00:00:00Z"}}}}
END
"""


def bearer(configuration: Any) -> str:
    """What a request has in its header: the client's package looks for a newer token then."""
    return str(configuration.auth_settings()["BearerToken"]["value"])


def readable(configuration: Any) -> list[str]:
    return [Path(getattr(configuration, name)).read_text() for name in ("ssl_ca_cert", "cert_file", "key_file")]


def test_a_token_beside_them_brings_no_name_of_a_removed_file_back(temporary: Path, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    fields = {name: base64.b64encode(text.encode()).decode() for name, text in WORDS.items()}
    file.write_text(KUBECONFIG.format(**fields).replace("user: {client-cert", "user: {token: secret, client-cert"))
    seen = connect(None, file).client.configuration
    for _ in range(2):
        assert bearer(seen) == "Bearer secret"
        assert readable(seen) == list(WORDS.values())
        assert list(temporary.iterdir()) == []


def test_a_plugin_that_is_asked_again_gives_another_token_and_leaves_no_file(temporary: Path, tmp_path: Path) -> None:
    plugin, file = tmp_path / "plugin", tmp_path / "kubeconfig"
    plugin.write_text(PLUGIN.format(asked=tmp_path / "asked"))
    plugin.chmod(0o755)
    fields = {name: base64.b64encode(text.encode()).decode() for name, text in WORDS.items()}
    exec_ = f"exec: {{apiVersion: client.authentication.k8s.io/v1, command: {plugin}, interactiveMode: Never}}"
    file.write_text(KUBECONFIG.format(**fields).replace("user: {client-cert", f"user: {{{exec_}, client-cert"))
    api = connect(None, file)
    seen = api.client.configuration
    assert [bearer(seen) for _ in range(2)] == ["Bearer token-2", "Bearer token-3"]
    assert readable(seen) == list(WORDS.values())
    assert list(temporary.iterdir()) == []


def test_credentials_that_a_later_request_brings_are_kept_in_memory_too(temporary: Path) -> None:
    """As a plugin may that gives a certificate with its second answer."""
    from kubernetes.config import kube_config

    def hook(configuration: Any) -> None:
        configuration.api_key["authorization"] = "Bearer new"
        configuration.cert_file = kube_config._create_temp_file_with_content("newer")

    configuration, moved = credentials._configuration(), credentials._Moved()
    configuration.ssl_ca_cert = "stays"
    refresh = credentials._refreshing(hook, moved)
    refresh(configuration)
    assert Path(configuration.cert_file).read_text() == "newer"
    assert (list(temporary.iterdir()), len(moved.files), configuration.ssl_ca_cert) == ([], 1, "stays")
