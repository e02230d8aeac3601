"""Decides between KVM and emulation. /dev/kvm may open and the guest hang all the same, so only a boot counts."""
import hashlib
import os
import subprocess

from .guest import probe
from .kernel import cache_folder, write_whole
from .packages import program

probe_seconds = 8


def choose(kernel, wanted, folder, say):
    """"kvm" or "tcg". The probe's outcome is kept until the machine, the kernel or QEMU changes."""
    if wanted != "auto":
        return wanted
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    qemu = subprocess.run([program("qemu-system-x86_64"), "--version"], stdout=subprocess.PIPE, check=False).stdout
    key = hashlib.sha256(boot.encode() + kernel.version.encode() + qemu).hexdigest()[:16]
    path = os.path.join(cache_folder(), "accelerator")
    try:
        with open(path, encoding="ascii") as file:
            kept_key, _, kept = file.read().strip().partition(" ")
        if kept_key == key and kept in ("kvm", "tcg"):
            return kept
    except OSError:
        pass
    say(f"trying whether a guest boots under KVM (once per start of this machine, at most {probe_seconds} s)")
    found = "kvm" if probe(kernel, "kvm", os.path.join(folder, "probe.log"), probe_seconds) else "tcg"
    say("KVM works" if found == "kvm" else "no guest boots under KVM here; using emulation, which is slower")
    write_whole(path, f"{key} {found}\n".encode())
    return found
