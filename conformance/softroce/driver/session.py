"""One run: boots the guests, passes output and requests between them and the user, ends everything."""
import os
import random
import selectors
import signal
import socket
import time

from . import accelerator, relay
from .errors import NotUp, SoftroceError, status_time_limit, stop_signals
from .folder import Folder
from .guest import Guest, machine_arguments
from .output import Output, write_all
from .terminal import RawTerminal

wire_names = ("data", "control")
# A guest is up after 6 s under emulation on an idle machine; some machines are very busy. Once in a great while one
# hangs before its kernel says anything: then it is booted again.
boot_limit = 150
# What is lost when the guest ends before its last words arrived; only a broken guest needs it.
farewell_limit = 10


class Session:
    def __init__(self, options, kernel, say):
        self.options = options
        self.kernel = kernel
        self.say = say
        self.folder = None
        self.relay = None
        self.guests = []
        self.outputs = {}
        self.arrived = {}  # barrier name: the hosts that came
        self.attached = {}  # host: what its shell's console is connected to
        self.selector = selectors.DefaultSelector()
        self.listener = None
        self.terminal = None
        self.deadline = None
        self.shell_ended = False

    def run(self):
        """Runs the command in every guest; returns the exit status for the caller."""
        try:
            self.start()
            return self.loop()
        finally:
            # Nothing may cut the cleaning short.
            before = {number: signal.signal(number, signal.SIG_IGN) for number in stop_signals}
            self.end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def start(self):
        options = self.options
        self.folder = Folder()
        how = accelerator.choose(self.kernel, options.accelerator, self.folder.path, self.say)
        if options.out:
            os.makedirs(options.out, exist_ok=True)
            options.out = os.path.realpath(options.out)
        keep = "yes" if options.keep or options.shell else ""
        settings = {"SOFTROCE_HOSTS": options.hosts, "out_folder": options.out or "", "keep": keep,
                    "modules": self.kernel.modules, "mtu": options.mtu,
                    "device": "no" if options.no_device else "yes"}
        self.folder.write_guest_files(settings, options.command)
        if options.hosts == 2:
            seed = options.seed if options.seed is not None else random.randrange(1 << 32)
            self.say(f"seed of the wires' losses: {seed}")
            self.relay = relay.Relay(wire_names, seed)
            self.relay.start()
        self.listen()
        self.deadline = time.monotonic() + options.time_limit if options.time_limit else None
        self.boot_deadline = time.monotonic() + boot_limit
        for host in range(options.hosts):
            self.start_guest(host, how)
        if options.keep:
            self.say(f"session folder: {self.folder.path}")

    def start_guest(self, host, how):
        options = self.options
        memory = options.memory or (2048 if options.hosts == 1 else 1024)
        arguments = machine_arguments(self.kernel, how, memory, 2 if options.hosts == 1 else 1,
                                      f"softroce.host={host}", self.folder.console(host))
        shares = [("root", "/", "on"), ("session", self.folder.shared, "on")]
        if options.out:
            shares.append(("out", options.out, "off"))
        for tag, path, readonly in shares:
            if "," in path:
                raise SoftroceError(f"QEMU cannot share a folder with a comma in its name: {path}")
            arguments += ["-virtfs", f"local,path={path},mount_tag={tag},security_model=none,"
                                     f"readonly={readonly},multidevs=remap"]
        guest = Guest(host, arguments, list(self.relay.wires.values()) if self.relay else [],
                      self.folder.console(host))
        self.guests.append(guest)
        label = f"host{host}| " if options.hosts == 2 else ""
        for name, descriptor in (("out", 1), ("err", 2)):
            self.outputs[host, name] = Output(descriptor, self.folder.end_marker, label)
            self.watch(guest.channels[name], lambda host=host, name=name: self.on_output(host, name))
        self.watch(guest.channels["control"], lambda host=host: self.on_control(host))
        self.watch(guest.channels["shell"], lambda host=host: self.on_shell(host))
        self.watch(guest.exit_descriptor, lambda host=host: self.on_exit(host))

    def watch(self, what, action):
        self.selector.register(what, selectors.EVENT_READ, action)

    def listen(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.folder.control)
        self.listener.listen(8)
        self.watch(self.listener, self.on_caller)

    # What happens while the guests run.

    def loop(self):
        while True:
            done = [guest for guest in self.guests if guest.status is not None]
            if self.finished(done):
                failed = [guest.status for guest in self.guests if guest.status]
                return failed[0] if failed else 0
            now = time.monotonic()
            if self.deadline and now > self.deadline:
                self.say(f"time limit of {self.options.time_limit:g} s reached; "
                         + self.describe_unfinished())
                return status_time_limit
            if now > self.boot_deadline and not all(guest.ready for guest in self.guests):
                kind = SoftroceError if any(guest.ready for guest in self.guests) else NotUp
                raise kind(f"a guest was not up after {boot_limit} s:\n" + self.consoles())
            for key, _ in self.selector.select(0.5):
                key.data()
            if done and len(done) < len(self.guests) and any(guest.status for guest in done):
                grace = time.monotonic() + self.options.grace
                if self.deadline is None or grace < self.deadline:
                    self.deadline, self.options.time_limit = grace, self.options.grace

    def finished(self, done):
        if len(done) < len(self.guests) or any(not output.ended for output in self.outputs.values()):
            return False
        if self.options.shell:
            if not self.terminal:
                self.attach_terminal()
            return self.shell_ended
        if self.options.keep and not self.shell_ended:
            self.say(f"the command ended; the guests stay up. `softroce shell [--host N]` opens a shell in one, "
                     "Ctrl-C here ends them.")
            self.shell_ended = True  # said once
        return not self.options.keep

    def describe_unfinished(self):
        hosts = [str(guest.host) for guest in self.guests if guest.status is None]
        return "unfinished on host " + " and ".join(hosts) if hosts else "the guests were kept"

    def consoles(self):
        return "".join(f"console of host {guest.host}:\n{guest.console_tail()}" for guest in self.guests)

    def receive(self, channel):
        try:
            data = channel.recv(65536)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data and channel in self.selector.get_map():
            self.selector.unregister(channel)
        return data

    def on_output(self, host, name):
        data = self.receive(self.guests[host].channels[name])
        if data:
            self.outputs[host, name].feed(data)
        elif data == b"":
            self.outputs[host, name].finish()

    def on_exit(self, host):
        guest = self.guests[host]
        self.selector.unregister(guest.exit_descriptor)
        if guest.status is not None:
            return
        limit = time.monotonic() + farewell_limit
        while time.monotonic() < limit:  # its last words may still wait in the channel
            data = self.receive(guest.channels["control"])
            if not data:
                break
            self.take_control(guest, data)
        if guest.status is None:
            raise SoftroceError(f"the guest of host {host} ended by itself, QEMU's status {guest.process.wait()} "
                                "(kernel panic, or out of memory? --keep keeps its log):\n"
                                + guest.console_tail(40))

    def on_control(self, host):
        data = self.receive(self.guests[host].channels["control"])
        if data:
            self.take_control(self.guests[host], data)

    def take_control(self, guest, data):
        guest.pending_control += data
        *lines, guest.pending_control = guest.pending_control.split(b"\n")
        for line in lines:
            words = line.decode(errors="replace").split()
            if words == ["ready"]:
                guest.ready = True
            elif words[:1] == ["exit"]:
                guest.status = int(words[1])
            elif words[:1] == ["failed"]:
                raise SoftroceError(f"the guest of host {guest.host} could not be set up: {' '.join(words[1:])}\n"
                                    + guest.console_tail())
            elif words == ["shell-ended"]:
                self.shell_ended = self.shell_ended or (bool(self.terminal) and guest.host == 0)
            elif words:
                guest.answer(self.carry_out(words, guest.host))

    def carry_out(self, words, host=None):
        """Answers a request from a guest or from `softroce wire` on this machine."""
        try:
            if words[0] == "wire":
                return f"ok {relay.command(self.relay, self.guests, words[1:])}".rstrip()
            if words[0] == "arrive" and len(words) == 2 and host is not None:
                here = self.arrived.setdefault(words[1], set())
                here.add(host)
                return "ok" if len(here) == self.options.hosts else "ok waiting"
            raise SoftroceError(f"unknown request '{' '.join(words)}'; usage: {relay.usage}")
        except SoftroceError as error:
            return f"error {error}"

    # The shell's console, and callers on this machine.

    def attach_terminal(self):
        self.terminal = RawTerminal()
        self.say("shell on host 0; `exit` ends the session")
        self.attached[0] = lambda data: write_all(1, data)
        self.watch(0, lambda: self.from_terminal(0))
        write_shell(self.guests[0], self.terminal.size_command())

    def from_terminal(self, host):
        data = os.read(0, 4096)
        if data:
            write_shell(self.guests[host], data)
        else:
            self.selector.unregister(0)
            write_shell(self.guests[host], b"\x04")

    def on_shell(self, host):
        data = self.receive(self.guests[host].channels["shell"])
        if data and host in self.attached:
            self.attached[host](data)

    def on_caller(self):
        caller, _ = self.listener.accept()
        self.watch(caller, lambda: self.on_caller_line(caller))

    def on_caller_line(self, caller):
        data = self.receive(caller)
        if not data:
            caller.close()
            return
        words = data.decode(errors="replace").split()
        if words[:1] == ["attach"]:
            self.attach_caller(caller, words[1:])
        elif words:
            caller.sendall(self.carry_out(words).encode() + b"\n")

    def attach_caller(self, caller, words):
        host = int(words[0]) if words and words[0].isdigit() else 0
        if host >= len(self.guests) or not (self.options.keep or self.options.shell):
            caller.sendall(b"error no shell there: the session has no such host, or was started without "
                           b"--keep or --shell\n")
            return
        caller.sendall(b"ok\n")
        self.selector.unregister(caller)
        self.attached[host] = caller.sendall
        self.watch(caller, lambda: self.from_caller(caller, host))

    def from_caller(self, caller, host):
        data = self.receive(caller)
        if data:
            write_shell(self.guests[host], data)
        else:
            self.attached.pop(host, None)
            caller.close()

    def end(self):
        for guest in self.guests:
            guest.kill()
        if self.terminal:
            self.terminal.restore()
        if self.relay:
            self.relay.stop()
        for key in list(self.selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self.selector.close()
        if self.folder and self.options.keep:
            self.folder.close_but_keep()
            self.say(f"kept: {self.folder.path}")
        elif self.folder:
            self.folder.remove()


def write_shell(guest, data):
    """A console holds little; what a fast typist or a paste sends beyond it is given a moment."""
    channel = guest.channels["shell"]
    channel.settimeout(2)
    try:
        channel.sendall(data)
    except OSError:
        pass
    channel.setblocking(False)

