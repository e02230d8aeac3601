"""What the user types."""
import argparse
import os
import selectors
import signal
import socket
import sys

from . import host, relay
from .errors import Interrupted, NotUp, SoftroceError, status_tool_failed, stop_signals
from .folder import find_running
from .kernel import get_kernel
from .packages import require, run_needs
from .session import Session
from .terminal import RawTerminal

run_help = """Runs COMMAND in a guest whose kernel has Soft-RoCE, over this machine's own files, and returns its exit
status (124: time limit, 125: the tool itself failed, 128 + N: stopped by signal N). What COMMAND writes to files is
gone with the guest, except below --out. In the guest these are set: SOFTROCE_HOST, SOFTROCE_HOSTS, SOFTROCE_DEVICE,
SOFTROCE_GID_INDEX, SOFTROCE_ADDRESS, SOFTROCE_PEER, SOFTROCE_CONTROL_ADDRESS, SOFTROCE_CONTROL_PEER,
SOFTROCE_OUT."""


def parser():
    top = argparse.ArgumentParser(prog="softroce", description="Real RDMA verbs on a machine without RDMA hardware.")
    commands = top.add_subparsers(dest="action", required=True, metavar="ACTION")
    run = commands.add_parser("run", help="run a command in one guest or two", description=run_help)
    run.add_argument("--hosts", type=int, choices=(1, 2), default=1, help="number of guests (default 1)")
    run.add_argument("--out", metavar="DIR", help="folder that the guests may write, at the same path")
    run.add_argument("--shell", action="store_true", help="open a shell in the guest (after COMMAND, if given)")
    run.add_argument("--keep", action="store_true", help="leave the guests up after COMMAND, and keep the logs")
    run.add_argument("--time-limit", type=float, default=600, metavar="SECONDS",
                     help="end the run after this time, boot included; 0: never (default 600)")
    run.add_argument("--grace", type=float, default=60, metavar="SECONDS",
                     help="two hosts: time the other host has once one failed (default 60)")
    run.add_argument("--accelerator", choices=("auto", "kvm", "tcg"), default="auto",
                     help="auto takes KVM only after a guest has booted under it")
    run.add_argument("--memory", type=int, metavar="MIB", help="memory per guest (default 2048, two hosts: 1024)")
    run.add_argument("--mtu", type=int, default=1500, help="MTU of the data interface (default 1500)")
    run.add_argument("--seed", type=int, help="seed of the losses on the wires, to replay a run")
    run.add_argument("--no-device", action="store_true", help="do not create the RDMA device")
    run.add_argument("--install", action="store_true", help="install missing Debian packages first (needs root)")
    run.add_argument("--quiet", action="store_true", help="say nothing but errors")
    run.add_argument("command", nargs="*", metavar="COMMAND")
    fetch = commands.add_parser("fetch", help="put the guest's kernel into the cache now")
    fetch.add_argument("--update", action="store_true", help="take the newest even if one is cached")
    fetch.add_argument("--install", action="store_true", help="install missing Debian packages first (needs root)")
    wire = commands.add_parser("wire", help="cut, restore, delay … a wire of a running session",
                               description=relay.usage)
    shell = commands.add_parser("shell", help="open a shell in a guest of a session with --keep or --shell")
    shell.add_argument("--host", type=int, choices=(0, 1), default=0)
    for one in (wire, shell):
        one.add_argument("--session", metavar="DIR", help="the session's folder, when several run")
    wire.add_argument("words", nargs="+", metavar="NAME ACTION [VALUE]")
    commands.add_parser("host-setup", help="use the rxe of this machine's own kernel, without a guest")
    commands.add_parser("host-undo", help="undo host-setup")
    return top


def main(arguments):
    options = parser().parse_args(arguments)
    try:
        for number in stop_signals:
            signal.signal(number, on_signal)
        return actions[options.action](options)
    except SoftroceError as error:
        report(str(error).rstrip())
        return status_tool_failed
    except Interrupted as stop:
        report(str(stop))
        return 128 + stop.signal_number
    except BrokenPipeError:
        # Whoever read our output went away; keep Python from complaining when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return status_tool_failed


def on_signal(number, frame):
    raise Interrupted(number)


def report(text):
    sys.stderr.write(f"softroce: {text}\n")
    sys.stderr.flush()


def run(options):
    if not options.command and not (options.shell or options.keep):
        raise SoftroceError("nothing to run: softroce run [options] -- COMMAND…, or --shell")
    check_machine()
    say = (lambda text: None) if options.quiet else report
    require(run_needs, options.install)
    kernel = get_kernel(install=options.install, say=say)
    try:
        return Session(options, kernel, say).run()
    except NotUp as error:
        report(f"{error}\nbooting once more")
    return Session(options, kernel, say).run()


def check_machine():
    if os.uname().machine != "x86_64":
        raise SoftroceError(f"the guest is an x86_64 one and runs this machine's programs; this is "
                            f"{os.uname().machine}")


def fetch(options):
    check_machine()
    require(run_needs, options.install)
    kernel = get_kernel(options.update, options.install, report)
    kernel.initial_disk()
    report(f"kernel {kernel.version} is ready in {kernel.folder}")
    return 0


def call(session, request):
    """Opens the session's control socket, sends one request; returns the socket and the answer's line."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.path.join(find_running(session), "control"))
    connection.sendall(request.encode() + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        data = connection.recv(1)  # byte by byte: a shell's output may follow the line at once
        if not data:
            break
        answer += data
    answer = answer.decode().strip()
    if not answer.startswith("ok"):
        raise SoftroceError(answer.removeprefix("error ") or "the session did not answer")
    return connection, answer.removeprefix("ok").strip()


def wire(options):
    connection, answer = call(options.session, " ".join(["wire", *options.words]))
    connection.close()
    if answer:
        print(answer)
    return 0


def shell(options):
    connection, _ = call(options.session, f"attach {options.host}")
    terminal = RawTerminal()
    sys.stderr.write("connected; press Enter for a prompt, Ctrl-] leaves the shell running and disconnects\r\n")
    connection.sendall(terminal.size_command())
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ)
            selector.register(connection, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    data = os.read(key.fd, 4096)
                    if not data or (key.fd == 0 and b"\x1d" in data):
                        return 0
                    os.write(1, data) if key.fileobj is connection else connection.sendall(data)
    finally:
        terminal.restore()
        connection.close()


actions = {"run": run, "fetch": fetch, "wire": wire, "shell": shell,
           "host-setup": lambda options: host.set_up(report), "host-undo": lambda options: host.undo(report)}
