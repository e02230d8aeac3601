"""One QEMU guest: its command line, its channels (all inherited descriptors, so nothing is left in a folder)."""
import ctypes
import json
import os
import signal
import socket
import subprocess
import time

from .errors import SoftroceError
from .host_ticks import counter_khz
from .packages import program

channel_names = ("control", "out", "err", "shell", "monitor")
death_signal_option = 1  # PR_SET_PDEATHSIG


def die_with_parent():
    """Runs in the child: QEMU ends even when this tool is killed in a way it cannot catch."""
    ctypes.CDLL(None).prctl(death_signal_option, signal.SIGKILL, 0, 0, 0)
    os.setpgid(0, 0)  # Ctrl-C on the terminal is for the tool, which then ends the guest


def machine_arguments(kernel, accelerator, memory, processors, command_line, console):
    accelerate = ["-accel", "kvm", "-cpu", "host"] if accelerator == "kvm" else \
        ["-accel", "tcg,thread=multi", "-cpu", "max"]
    # tsc=reliable: else the emulated guest takes the HPET as its clock, and reading the time is slow.
    khz = counter_khz() if accelerator == "tcg" else None
    clock = f"tsc=reliable tsc_early_khz={khz} " if khz else ""
    return [program("qemu-system-x86_64"), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            *accelerate, "-smp", str(processors), "-m", str(memory),
            "-kernel", kernel.image, "-initrd", kernel.initial_disk(),
            # no_timer_check: the check takes a starved virtual timer for a broken one, and panics.
            "-append", "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off nokaslr cryptomgr.notests audit=0 "
                       "apparmor=0 rcupdate.rcu_expedited=1 no_timer_check " + clock + command_line,
            "-chardev", f"file,id=console,path={console},append=on", "-serial", "chardev:console"]


class Guest:
    """A running guest. `channels` holds our ends by name; `on_link` faults go through the monitor."""

    def __init__(self, host, arguments, wires, console):
        self.host = host
        self.console = console
        self.channels = {}
        self.pending_control = b""
        self.status = None
        self.ready = False
        inherited = []
        arguments = list(arguments)
        arguments += ["-device", "virtio-serial-pci,max_ports=8"]
        for name in channel_names:
            ours, theirs = socket.socketpair()
            self.channels[name] = ours
            inherited.append(theirs)
            arguments += ["-chardev", f"socket,id={name},fd={theirs.fileno()}"]
            if name == "monitor":
                arguments += ["-mon", "chardev=monitor,mode=control"]
            elif name == "shell":
                arguments += ["-device", "virtconsole,chardev=shell"]
            else:
                arguments += ["-device", f"virtserialport,chardev={name},name={name}"]
        descriptors = [end.fileno() for end in inherited]
        for index, wire in enumerate(wires):
            end = wire.guest_ends[host]
            descriptors.append(end.fileno())
            # romfile= empty: no boot ROM, which Debian keeps in a package of its own.
            arguments += ["-netdev", f"dgram,id={wire.name},local.type=fd,local.str={end.fileno()}",
                          "-device", f"virtio-net-pci,netdev={wire.name},romfile=,addr={16 + index},"
                                     f"mac=52:54:00:77:{index:02}:{host + 1:02}"]
        with open(console, "wb") as log:  # QEMU's own complaints go where the guest's console goes
            self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            pass_fds=descriptors, preexec_fn=die_with_parent)
        for end in inherited:
            end.close()
        self.exit_descriptor = os.pidfd_open(self.process.pid)
        for name in ("control", "out", "err", "shell"):
            self.channels[name].setblocking(False)
        self.monitor_open = False

    def set_link(self, wire, up):
        """Takes the guest's port on a wire up or down; the guest sees its carrier change."""
        self.monitor_ask("set_link", {"name": wire, "up": up})

    def monitor_ask(self, command, arguments=None):
        if not self.monitor_open:
            self.monitor_open = True
            self.channels["monitor"].settimeout(10)
            self.monitor_file = self.channels["monitor"].makefile("rw", encoding="utf-8")
            self.monitor_file.readline()  # greeting
            self.monitor_ask("qmp_capabilities")
        try:
            self.monitor_file.write(json.dumps({"execute": command, "arguments": arguments or {}}) + "\n")
            self.monitor_file.flush()
            while True:
                line = self.monitor_file.readline()
                answer = json.loads(line) if line else {"error": {"desc": "the guest has ended"}}
                if "error" in answer:
                    raise SoftroceError(f"QEMU refused {command} {arguments}: {answer['error']['desc']}")
                if "return" in answer:
                    return answer["return"]
        except OSError as error:
            raise SoftroceError(f"QEMU did not answer {command}: {error}") from error

    def answer(self, text):
        """Replies on the control port. The port's buffer is far larger than one line, so it cannot block."""
        try:
            self.channels["control"].send(text.encode() + b"\n")
        except OSError:
            pass  # the guest is going away; its end is noticed elsewhere

    def console_tail(self, lines=15):
        try:
            with open(self.console, encoding="utf-8", errors="replace") as file:
                return "".join("  | " + line.rstrip() + "\n" for line in file.readlines()[-lines:])
        except OSError:
            return ""

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.exit_descriptor)
        for channel in self.channels.values():
            channel.close()
        if self.monitor_open:
            self.monitor_file.close()


def probe(kernel, accelerator, console, limit):
    """Boots a guest that only says that it runs. True when it said so and powered off within `limit` seconds."""
    arguments = machine_arguments(kernel, accelerator, 512, 1, "softroce.probe", console)
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, preexec_fn=die_with_parent) as process:
        try:
            deadline = time.monotonic() + limit
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:
            if process.poll() is None:
                process.kill()
    with open(console, encoding="utf-8", errors="replace") as file:
        return process.returncode == 0 and "softroce-probe-ok" in file.read()
