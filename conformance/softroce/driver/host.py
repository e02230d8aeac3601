"""Soft-RoCE in the host's own kernel, where that kernel has it: no guest needed."""
import os
import subprocess

from .errors import SoftroceError
from .packages import host_needs, program, require

interface, device, address = "softroce0", "rxe0", "10.77.0.1"


def steps():
    return [["modprobe", "rdma_rxe"], ["modprobe", "rdma_ucm"],
            ["ip", "link", "add", interface, "type", "veth", "peer", "name", interface + "-end"],
            ["ip", "link", "set", interface, "up"], ["ip", "link", "set", interface + "-end", "up"],
            ["ip", "address", "add", address + "/24", "dev", interface],
            ["rdma", "link", "add", device, "type", "rxe", "netdev", interface]]


def undo_steps():
    return [["rdma", "link", "delete", device], ["ip", "link", "delete", interface]]


def run(arguments):
    done = subprocess.run([program(arguments[0]) or arguments[0], *arguments[1:]], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout.strip()


def set_up(say):
    require(host_needs)
    if os.getuid() != 0:
        raise SoftroceError("host-setup creates network and RDMA devices and needs root; try it with sudo")
    if os.path.exists(f"/sys/class/infiniband/{device}"):
        raise SoftroceError(f"there is an RDMA device {device} already; `softroce host-undo` removes one made by "
                            "host-setup")
    undo = []
    for step in steps():
        status, output = run(step)
        if status == 0:
            if step[:3] == ["ip", "link", "add"]:
                undo.insert(0, undo_steps()[1])
            continue
        for back in undo:
            run(back)
        if step[0] == "modprobe" and step[1] != "rdma_rxe":
            say(f"`{' '.join(step)}` failed ({output}); programs that connect by rdma_cm will not work")
            continue
        text = f"`{' '.join(step)}` failed: {output}"
        if step[0] == "modprobe":
            text += (f"\nThis machine's kernel ({os.uname().release}) has no Soft-RoCE. Use a guest instead: "
                     "softroce run -- COMMAND")
        raise SoftroceError(text)
    say(f"RDMA device {device} on interface {interface}, address {address}, GID index 1.")
    say("Undo with `softroce host-undo`, that is: " + "; ".join(" ".join(step) for step in undo_steps())
        + ". The modules stay loaded and do no harm; a restart of the machine undoes everything too.")
    say("Large registrations may need `ulimit -l unlimited` in the shell that runs the program.")
    return 0


def undo(say):
    status = 0
    for step in undo_steps():
        failed, output = run(step)
        if failed:
            say(f"`{' '.join(step)}` failed: {output}")
            status = 1
    return status
