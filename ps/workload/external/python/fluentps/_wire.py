"""Messages to and from the parent. PROTOCOL.md has their meaning."""

from __future__ import annotations

import mmap
import os
import socket
import struct
from typing import NoReturn, Optional, Tuple

VERSION = 1

HELLO, TENSOR, BOUND, MAP, UNMAP, FILL, FILLED, PLACE, STEP, HAVE = range(1, 11)
FORWARD, GO, READY, DONE, EVAL, RESULT, STATE, FAIL, BYE = range(11, 20)
KEEPS_STATE = 1  # a flag of BOUND
ALL_READY = 1  # a flag of DONE
SIZES_STATE, SAVES_STATE, RESTORES_STATE = range(3)  # flags of STATE

NAMES = (
    "HELLO TENSOR BOUND MAP UNMAP FILL FILLED PLACE STEP HAVE FORWARD GO READY DONE EVAL RESULT STATE FAIL BYE"
).split()

HEAD = struct.Struct("<BBHIQ")
LOSS = struct.Struct("<BBHId")  # FORWARD and RESULT: b is a float64
TEXT_MAX = 60_000
REASON_MAX = 500  # bytes of a FAIL


class Error(RuntimeError):
    """A script does not use this package as it must, or a model cannot be trained. The text names a way out."""


class ParentGone(SystemExit):
    """The parent has ended, or has ended the run. Unless it is caught, the process ends with code 1 and one line."""


def name_of(kind: int) -> str:
    """The name of a kind of message."""
    return NAMES[kind - 1] if 0 < kind <= len(NAMES) else f"a message of kind {kind}"


def packet(kind: int, flags: int = 0, a: int = 0, b: int = 0, text: bytes = b"") -> bytes:
    """The bytes of a message."""
    if len(text) > TEXT_MAX:
        raise Error(f"{name_of(kind)} with {len(text)} bytes of text, the limit is {TEXT_MAX}: shorten names")
    return HEAD.pack(kind, flags, 0, a, b) + text


def reason(error: BaseException) -> bytes:
    """One line of at most 500 bytes that says what has happened."""
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return line.encode("utf-8", "replace")[:REASON_MAX].decode("utf-8", "ignore").encode()


class Link:
    """The way to a parent. `text` and `memory` belong to the message that was received last."""

    text: bytes = b""
    memory: Optional[mmap.mmap] = None
    closed: bool = False

    def send(self, data: bytes) -> None:
        """Sends one packet."""
        raise NotImplementedError

    def receive(self, idle: bool) -> Tuple[int, int, int, int]:
        """Waits for a packet: kind, flags, a, b. MAP may come only where the child is idle."""
        raise NotImplementedError

    def fail(self, why: bytes) -> None:
        """Tells the parent that the run has failed. It never raises: the failure itself goes on."""

    def close(self) -> None:
        """Closes this process's end."""
        self.closed = True


class SocketLink(Link):
    """A link to a parent process."""

    def __init__(self, descriptor: int) -> None:
        try:
            self._socket = socket.socket(fileno=descriptor)
            self._socket.setblocking(True)
            self._socket.set_inheritable(False)
        except OSError as e:
            raise Error(
                f"FLUENTPS_CHILD says that descriptor {descriptor} leads to the parent, but: {e.strerror}. "
                "Start the script itself, not through a program that closes descriptors, such as torchrun: a script "
                "may start further processes"
            ) from None
        self._buffer = bytearray(HEAD.size + TEXT_MAX)
        self._socket_send = self._socket.send
        self._receive_into = self._socket.recv_into
        self._unpack = HEAD.unpack_from

    def send(self, data: bytes) -> None:
        try:
            self._socket_send(data)
        except OSError as e:
            self._gone(e)

    def receive(self, idle: bool) -> Tuple[int, int, int, int]:
        descriptor = -1
        try:
            if idle:
                n, descriptor = self._with_descriptor()
            else:
                n = self._receive_into(self._buffer)
        except OSError as e:
            self._gone(e)
        if n == 0:
            self._gone(None)
        if n < HEAD.size:
            raise Error(f"the parent has sent a message of {n} bytes, need at least {HEAD.size}")
        kind, flags, _, a, b = self._unpack(self._buffer)
        if n > HEAD.size:
            self.text = bytes(self._buffer[HEAD.size:n])
        if kind == MAP:
            self._map(descriptor, b)
        elif kind == FAIL:
            self.close()
            raise ParentGone("fluentps: the parent has ended the run: " + self.text.decode("utf-8", "replace"))
        return kind, flags, a, b

    def _with_descriptor(self) -> Tuple[int, int]:
        n, more, _, _ = self._socket.recvmsg_into([self._buffer], 32, socket.MSG_CMSG_CLOEXEC)
        for level, kind, data in more:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS and len(data) >= 4:
                return n, struct.unpack_from("i", data)[0]
        return n, -1

    def _map(self, descriptor: int, size: int) -> None:
        if descriptor < 0:
            raise Error("the parent has sent MAP without a descriptor")
        try:
            self.memory = mmap.mmap(descriptor, size)
        except (OSError, ValueError) as e:
            raise Error(f"cannot map a region of {size} bytes: {e}") from None
        finally:
            os.close(descriptor)

    def _gone(self, e: Optional[OSError]) -> NoReturn:
        self.close()
        raise ParentGone(f"fluentps: the parent is gone ({e.strerror if e else 'it has closed the connection'})")

    def fail(self, why: bytes) -> None:
        if self.closed:
            return
        try:
            # Without MSG_DONTWAIT, a parent that reads nothing would hold up the traceback.
            self._socket.send(packet(FAIL, text=why), socket.MSG_DONTWAIT)
            # A socket that ends with messages unread makes the parent's next receive an ECONNRESET, before FAIL.
            while self._socket.recv_into(self._buffer, 0, socket.MSG_DONTWAIT):
                pass
        except OSError:
            pass
        self.closed = True  # the end of the process closes it

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._socket.close()
