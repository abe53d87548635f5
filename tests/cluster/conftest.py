"""A real control plane, started once for all tests of this directory, and a namespace of its own for each test."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.platforms.docker.engine import connect
from chaos.platforms.docker.image import make_skeleton
from chaos.platforms.kubernetes.client.api import Api, ApiError
from chaos.platforms.kubernetes.run_client import RunClient
from tests.cluster import crds
from tests.cluster.command_line import Cluster, account
from tests.cluster.control_plane import CONTROLLERS, ControlPlane, control_plane, missing
from tests.cluster.docker_engine import NoEngine, docker_engine
from tests.cluster.docker_run import fresh as fresh
from tests.cluster.docker_run import made as made
from tests.cluster.docker_run import start_on as start_on
from tests.cluster.standin_clusterd import clusterd
from tests.cluster.standin_kubelet import Kubelet, kubelet
from tests.cluster.standin_kubelet import missing as no_pods
from tests.cluster.standin_mesh import mesh


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane; the test is skipped where its programs are not."""
    if (why := missing()) is not None:
        pytest.skip(f"needs a Kubernetes control plane: {why}")
    pytest.importorskip("kubernetes")
    with control_plane(tmp_path_factory.mktemp("control-plane")) as made:
        yield made


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> Api:
    """Its API, as administrator."""
    return plane.api()


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Docker engine that has the image of nodes; the test is skipped where none can be started."""
    pytest.importorskip("docker")
    with contextlib.ExitStack() as stack:
        try:
            # Short: the engine's sockets are below it.
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-engine-")))
            address = stack.enter_context(docker_engine(place))
        except NoEngine as error:
            pytest.skip(f"needs a Docker engine: {error}")
        client = connect(address)
        make_skeleton(client)
        client.close()
        yield address


@pytest.fixture
def namespace(api: Api) -> str:
    """A namespace of this test's own. Left behind: the control plane goes with it."""
    name = f"test-{secrets.token_hex(4)}"
    api.request("post", "/api/v1/namespaces", {"metadata": {"name": name}})
    # Pods are refused without the account that they run as; the controllers, where they run, make it too.
    try:
        api.request("post", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    except ApiError as error:
        if error.status != 409:
            raise
    return name


@pytest.fixture
def run_client(api: Api, namespace: str) -> RunClient:
    """What a run may do in that namespace, and with the node worker-1."""
    return RunClient(api, namespace, f"run-{secrets.token_hex(4)}", ["worker-1"])


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A directory of this test's own."""
    return tmp_path


@pytest.fixture
def workers(plane: ControlPlane, api: Api, tmp_path: Path) -> Iterator[Kubelet]:
    """Three nodes whose pods are processes of this host, and the controllers that make and replace pods."""
    for why in (missing(CONTROLLERS), no_pods()):
        if why is not None:
            pytest.skip(f"needs pods that run: {why}")
    with kubelet(api, ("worker-1", "worker-2", "worker-3"), tmp_path) as made:
        yield made


@pytest.fixture
def cluster(plane: ControlPlane, api: Api, workers: Kubelet, namespace: str) -> Iterator[Cluster]:
    """The command line called for that cluster; ClusterD and Chaos Mesh are played, and do nothing but tell."""
    crds.define(api, *crds.CHAOS_MESH)
    # Sockets lie below it, whose paths must be short: pytest's own directories are not.
    with (
        tempfile.TemporaryDirectory(prefix="chaos-test-") as volume,
        clusterd(api, namespace),
        mesh(api, namespace),
    ):
        yield Cluster(plane, api, namespace, Path(volume), account(plane, api, namespace))
