"""The API of a cluster as plain JSON, over the ``kubernetes`` client, which does connection, identity and errors.

One layer up (``own.py``) decides which requests go to which object; nothing here knows the owner of an object.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kubernetes.client.credentials import load_in_memory

CALL_SECONDS = 30.0
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class ApiError(PlatformError):
    """The API refused, or could not be reached. ``status`` is HTTP's; None without an answer."""

    def __init__(self, status: int | None, text: str) -> None:
        super().__init__(text)
        self.status = status

    @property
    def passing(self) -> bool:
        """Whether the server only cannot answer just now: it is restarting, or has too much to do."""
        return self.status is None or self.status == 429 or self.status >= 500


class NoKubernetes(PlatformError):
    """The client package is not installed, or no cluster is configured."""


class Api:
    """One cluster. Its methods may be called from several threads."""

    def __init__(self, client: Any, kept: Sequence[IO[bytes]] = ()) -> None:
        """Keep the client; ``client`` is a ``kubernetes.client.ApiClient``, ``kept`` its files in memory."""
        from kubernetes.dynamic import DynamicClient

        self.client = client
        self._kept = kept
        # Paths are known here: discovery would only cost calls, and leave a file in a world-writable directory.
        self._dynamic = DynamicClient(client, discoverer=lambda *_: None)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        seconds: float = CALL_SECONDS,
    ) -> dict[str, Any]:
        """Return the answer's object. Raises ApiError."""
        with _Errors(method, path):
            response = self._dynamic.request(
                method,
                path,
                body=body,
                query_params=list((query or {}).items()),
                content_type=content_type,
                serialize=False,
                _request_timeout=seconds,
            )
            answer: dict[str, Any] = json.loads(response.data)
        return answer

    def lines(
        self, path: str, query: Mapping[str, str], *, silence: float, longest: float, clock: Clock = SYSTEM_CLOCK
    ) -> Iterator[dict[str, Any]]:
        """Yield the objects of an answer that comes line by line, until it ends. Raises ApiError.

        ``silence`` is the seconds without a byte, ``longest`` the seconds of the whole answer, after which the
        connection counts as broken: a hung server or proxy may still send something now and then.
        """
        from kubernetes.watch.watch import iter_resp_lines

        with _Errors("watch", path):
            response = self._dynamic.request(
                "get", path, query_params=list(query.items()), serialize=False, _request_timeout=(CALL_SECONDS, silence)
            )
            try:
                for line in iter_resp_lines(_Timely(response, longest, clock)):
                    if line:
                        yield json.loads(line)
            finally:
                response.close()
                response.release_conn()

    def attach(self, namespace: str, pod: str, container: str, argv: Sequence[str]) -> Any:
        """Run a program in a container; return its streams as the client's WSClient, in bytes. Raises ApiError."""
        from kubernetes.client import CoreV1Api
        from kubernetes.stream import stream

        def attached() -> Any:
            return stream(
                CoreV1Api(self.client).connect_get_namespaced_pod_exec,
                pod,
                namespace,
                command=list(argv),
                container=container,
                stdin=True,
                stdout=True,
                stderr=True,
                tty=False,
                _preload_content=False,
                binary=True,
            )

        with _Errors("exec", f"pod {namespace}/{pod}"):
            return _in_time(attached, CALL_SECONDS)


def connect(context: str | None, kubeconfig: Path | None = None) -> Api:
    """Return the cluster of the kubeconfig (KUBECONFIG, ``~/.kube/config``) or, inside a pod without one, the pod's.

    Raises NoKubernetes.
    """
    try:
        from kubernetes import config
        from kubernetes.client import ApiClient, Configuration
    except ImportError as error:
        raise NoKubernetes(
            f"the platform kubernetes needs its client ({error}): pip install 'chaos-ascend[kubernetes]'"
        ) from error
    file = None if kubeconfig is None else str(kubeconfig)
    try:
        configuration, kept = load_in_memory(file, context)
        return Api(ApiClient(configuration), kept)
    except (config.ConfigException, OSError, ValueError) as error:
        refused = error
    if context is None and kubeconfig is None:
        inside = Configuration()
        try:
            config.load_incluster_config(client_configuration=inside)
            return Api(ApiClient(inside))
        except (config.ConfigException, OSError):
            pass
    raise NoKubernetes(f"no cluster can be reached: {refused}; set KUBECONFIG, or cluster.kubernetes.context")


class _Timely:
    """An answer that is read in pieces, and is broken off when it takes longer than ``seconds`` in all."""

    def __init__(self, response: Any, seconds: float, clock: Clock) -> None:
        self._response = response
        self._seconds = seconds
        self._clock = clock

    def stream(self, **arguments: Any) -> Iterator[bytes]:
        """Yield the pieces. Raises TimeoutError."""
        deadline = self._clock.mono() + int(self._seconds * 1e9)
        for piece in self._response.stream(**arguments):
            if self._clock.mono() > deadline:
                raise TimeoutError(f"deadline 'watch' of {self._seconds:g} s: the server should have ended it before")
            yield piece


def _in_time(connect: Callable[[], Any], seconds: float) -> Any:
    """Return the result of ``connect``, for a client without a deadline while it connects. Raises TimeoutError.

    A connection that comes too late is closed.
    """
    lock, done = threading.Lock(), threading.Event()
    made: list[Any] = []
    failed: list[BaseException] = []
    late = False

    def run() -> None:
        try:
            connection = connect()
        except BaseException as error:
            failed.append(error)
        else:
            with lock:
                if not late:
                    made.append(connection)
                    connection = None
            if connection is not None:
                connection.close()
        done.set()

    threading.Thread(target=run, name="exec", daemon=True).start()
    done.wait(seconds)
    with lock:
        late = True
    if failed:
        raise failed[0]
    if not made:
        raise TimeoutError(f"deadline 'exec' of {seconds:g} s: the stream was not opened")
    return made[0]


class _Errors:
    """Turns the client's exceptions into ApiError."""

    def __init__(self, method: str, path: str) -> None:
        self._what = f"{method} {path}"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if error is None or isinstance(error, (ApiError, GeneratorExit)) or not isinstance(error, Exception):
            return
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        if isinstance(error, ApiException):
            raise ApiError(error.status or None, f"{self._what}: {_reason(error)}") from error
        if isinstance(error, (HTTPError, OSError, ValueError)):
            raise ApiError(None, f"{self._what}: {type(error).__name__}: {error}") from error


def _reason(error: Any) -> str:
    """Return the API's reason for its refusal, without its headers."""
    body = error.body.decode("utf-8", "replace") if isinstance(error.body, bytes) else error.body
    try:
        message = json.loads(body or "{}").get("message")
    except (ValueError, AttributeError):
        message = None
    return f"{error.status} {message or error.reason}"
