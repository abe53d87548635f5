"""The connections of a rank to the other ranks of a communicator: offered data goes out, incoming data is kept."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chaos.rehearsal.device.peer import Peer, frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHUNK = 1 << 20


class Links:
    """The connections of ``rank`` to ``others``, served by the thread that calls the collectives."""

    def __init__(self, rank: int, others: Sequence[int]) -> None:
        self._rank = rank
        self.peers = {other: Peer(other) for other in others}
        self._selector = selectors.DefaultSelector()
        self._aborted = threading.Event()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)

    @property
    def aborted(self) -> bool:
        """Whether the rank was ordered to stop."""
        return self._aborted.is_set()

    def abort(self) -> None:
        """Wake the threads that wait for a peer. May be called from any thread."""
        self._aborted.set()
        os.write(self._wake_write, b"x")

    def connect(self, peer: Peer, connection: socket.socket) -> None:
        """Take a peer's connection, in place of an earlier one that the peer has left."""
        if peer.met and not peer.disconnected:
            self.lose(peer)
        connection.setblocking(False)
        peer.meet(connection)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.outgoing else 0)
        self._selector.register(connection, events, peer)

    def offer(self, peers: Sequence[Peer], sequence: int, payload: NDArray[Any]) -> None:
        """Send this to each of these peers, as soon as they take it."""
        for peer in peers:
            if not peer.disconnected:
                peer.outgoing = frame(self._rank, sequence, payload)
            if peer.met and not peer.disconnected:
                self._selector.modify(peer.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)

    def serve_ready(self, seconds: float) -> None:
        """Serve the peers that are ready, or become ready within so many seconds."""
        for key, events in self._selector.select(seconds):
            if key.data is not None:
                self._serve(key.data, events)

    def _serve(self, peer: Peer, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._send(peer)
        if events & selectors.EVENT_READ:
            self._receive(peer)

    def _receive(self, peer: Peer) -> None:
        try:
            chunk = peer.socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            peer.incoming += chunk
            peer.take_frames()
        else:
            self.lose(peer)

    def _send(self, peer: Peer) -> None:
        try:
            while peer.outgoing:
                sent = peer.socket.send(peer.outgoing[0])
                peer.outgoing[0] = peer.outgoing[0][sent:]
                if len(peer.outgoing[0]):
                    return
                peer.outgoing.pop(0)
        except BlockingIOError:
            return
        except OSError:
            peer.outgoing = []  # it has died; its earlier messages are still to be received
        self._selector.modify(peer.socket, selectors.EVENT_READ, peer)

    def lose(self, peer: Peer) -> None:
        """Stop listening to a dead peer. A collective that waits for it goes on waiting until ordered to stop."""
        peer.disconnected, peer.gone_at = True, time.monotonic()
        peer.outgoing = []
        if peer.met:
            self._selector.unregister(peer.socket)
            peer.socket.close()

    def sever(self) -> None:
        """Send and receive nothing any more. No connection is closed."""
        for peer in self.peers.values():
            if not peer.disconnected:
                peer.disconnected, peer.outgoing = True, []
                if peer.met:
                    self._selector.unregister(peer.socket)

    def close_peers(self) -> None:
        """End all connections."""
        for peer in self.peers.values():
            if peer.met:
                peer.socket.close()

    def close(self) -> None:
        """Close the remaining resources when the connections have been ended."""
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
