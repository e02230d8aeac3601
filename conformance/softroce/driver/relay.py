"""The wires between the guests: a relay that passes Ethernet frames on, or loses or delays them when asked."""
import heapq
import itertools
import os
import random
import re
import selectors
import socket
import threading
import time

from .errors import SoftroceError

usage = ("wire NAME ACTION, where NAME is data or control and ACTION is cut [HOST], pause TIMEms, restore, loss PERCENT%, "
         "delay TIMEms, down [HOST], up [HOST] or status")
frame_limit = 70_000  # a frame as QEMU hands it over, segmentation offload included
# A real cable holds little; a delayed wire must not grow without bound when a sender outruns it.
held_limit = 50_000


class Wire:
    """One cable between two guests. Fields are set by the control side and read by the relay thread."""

    def __init__(self, name, seed):
        self.name = name
        self.relay_ends = []  # ours, by host
        self.guest_ends = []  # QEMU's, by host
        for _ in range(2):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            for end in (ours, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
            ours.setblocking(False)
            theirs.setblocking(False)
            self.relay_ends.append(ours)
            self.guest_ends.append(theirs)
        self.cut = [False, False]  # by sending host
        self.paused_until = 0.0  # cut for a time, both ways
        self.loss = 0.0
        self.delay = 0.0
        self.last_due = [0.0, 0.0]  # a frame never overtakes one sent before it, also when the delay shrinks
        self.random = random.Random(seed)
        self.passed = 0
        self.lost = 0

    def is_cut(self, host):
        return self.cut[host] or time.monotonic() < self.paused_until

    def describe(self):
        cut = [str(host) for host in range(2) if self.is_cut(host)]
        state = "cut from host " + " and ".join(cut) if cut else "whole"
        return (f"{self.name}: {state}, loss {self.loss * 100:g}%, delay {self.delay * 1000:g}ms, "
                f"{self.passed} frames passed, {self.lost} lost")


class Relay(threading.Thread):
    """Moves frames in a thread of its own, so that a slow reader of the run's output never slows the wire."""

    def __init__(self, names, seed):
        super().__init__(name="relay", daemon=True)
        self.wires = {name: Wire(name, f"{seed}-{name}") for name in names}
        self.held = []  # (due, sequence, wire, sending host, frame)
        self.sequence = itertools.count()
        self.wake_read, self.wake_write = os.pipe()
        self.stopping = False

    def run(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.wake_read, selectors.EVENT_READ, None)
            for wire in self.wires.values():
                for host in range(2):
                    selector.register(wire.relay_ends[host], selectors.EVENT_READ, (wire, host))
            while not self.stopping:
                timeout = max(0.0, self.held[0][0] - time.monotonic()) if self.held else None
                for key, _ in selector.select(timeout):
                    if key.data:
                        self.take(*key.data)
                    else:
                        os.read(self.wake_read, 100)
                self.release()

    def take(self, wire, host):
        """Reads what `host` sent, some frames at a time so that the other direction gets its turn."""
        source = wire.relay_ends[host]
        for _ in range(64):
            try:
                frame = source.recv(frame_limit)
            except OSError:
                return
            if wire.is_cut(host) or (wire.loss and wire.random.random() < wire.loss):
                wire.lost += 1
            elif wire.delay or wire.last_due[host] > time.monotonic():
                if len(self.held) < held_limit:
                    due = max(time.monotonic() + wire.delay, wire.last_due[host])
                    wire.last_due[host] = due
                    heapq.heappush(self.held, (due, next(self.sequence), wire, host, frame))
                else:
                    wire.lost += 1
            else:
                self.give(wire, host, frame)

    def release(self):
        while self.held and self.held[0][0] <= time.monotonic():
            _, _, wire, host, frame = heapq.heappop(self.held)
            if wire.is_cut(host):
                wire.lost += 1
            else:
                self.give(wire, host, frame)

    @staticmethod
    def give(wire, host, frame):
        try:
            wire.relay_ends[1 - host].send(frame)
            wire.passed += 1
        except OSError:  # full, or the guest is gone: Ethernet drops
            wire.lost += 1

    def stop(self):
        self.stopping = True
        os.write(self.wake_write, b".")
        if self.is_alive():
            self.join(5)
        for wire in self.wires.values():
            for end in wire.relay_ends + wire.guest_ends:
                end.close()
        os.close(self.wake_read)
        os.close(self.wake_write)


def command(relay, guests, words):
    """Carries out `wire …`; returns the answer's text. The last of several words may name a host."""
    if relay is None:
        raise SoftroceError("there is no wire: one host reaches itself (start with --hosts 2)")
    if len(words) < 2 or words[0] not in relay.wires:
        raise SoftroceError(f"unknown request '{' '.join(['wire', *words])}'; usage: {usage}")
    wire, action, values = relay.wires[words[0]], words[1], words[2:]
    if action == "loss":
        wire.loss = quantity(values, r"%?", 100, "a percentage from 0 to 100")
        if wire.loss > 1:
            wire.loss = 0.0
            raise SoftroceError("loss must be from 0% to 100%")
    elif action == "delay":
        wire.delay = quantity(values, r"ms", 1000, "a time such as 20ms")
    elif action == "cut":
        for host in hosts(values):
            wire.cut[host] = True
    elif action == "pause":
        wire.paused_until = time.monotonic() + quantity(values, r"ms", 1000, "a time such as 500ms")
    elif action == "restore":
        wire.cut = [False, False]
        wire.loss = wire.delay = wire.paused_until = 0.0
        for guest in guests:
            guest.set_link(wire.name, True)
    elif action in ("down", "up"):
        for host in hosts(values):
            guests[host].set_link(wire.name, action == "up")
    elif action != "status":
        raise SoftroceError(f"unknown action '{action}'; usage: {usage}")
    return wire.describe() if action == "status" else ""


def quantity(values, unit, divisor, wanted):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)" + unit, values[0]) if len(values) == 1 else None
    if not match:
        raise SoftroceError(f"'{' '.join(values)}' is not {wanted}; usage: {usage}")
    return float(match.group(1)) / divisor


def hosts(values):
    if not values:
        return [0, 1]
    if len(values) == 1 and values[0] in ("0", "1"):
        return [int(values[0])]
    raise SoftroceError(f"'{' '.join(values)}' is not a host (0 or 1); usage: {usage}")
