"""Which programs a run needs, which Debian package brings each, and what to say when one is missing."""
import os
import shutil
import subprocess

from .errors import SoftroceError

# program (or absolute path), package, what it is needed for
run_needs = [
    ("qemu-system-x86_64", "qemu-system-x86", "runs the guest"),
    ("/bin/busybox", "busybox-static", "is the guest's first program (it must be the static one)"),
    ("depmod", "kmod", "works out which kernel modules depend on which"),
    ("rdma", "iproute2", "creates the RDMA device in the guest"),
    ("/etc/libibverbs.d/rxe.driver", "ibverbs-providers", "is the user-space driver of Soft-RoCE"),
]
fetch_needs = [
    ("apt-get", "apt", "downloads the guest's kernel package"),
    ("dpkg-deb", "dpkg", "unpacks the guest's kernel package"),
]
host_needs = [
    ("rdma", "iproute2", "creates the RDMA device"),
    ("modprobe", "kmod", "loads the rdma_rxe module"),
    ("/etc/libibverbs.d/rxe.driver", "ibverbs-providers", "is the user-space driver of Soft-RoCE"),
]
selftest_needs = [
    ("ib_write_lat", "perftest", "moves data over RDMA"),
    ("rping", "rdmacm-utils", "connects by addresses"),
    ("ping", "iputils-ping", "sees what the wires lose"),
]
search_path = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"


def program(name):
    """The full path of a program, also where PATH lacks the sbin folders (as it does for plain users)."""
    return shutil.which(name, path=search_path)


def is_there(name):
    if name == "/bin/busybox":
        return os.path.exists(name) and is_static(name)
    return os.path.exists(name) if name.startswith("/") else program(name) is not None


def is_static(path):
    """A program linked dynamically names its loader; the guest's first program must not need one."""
    with open(path, "rb") as file:
        return b"/lib64/ld-linux" not in file.read(4096)


def missing(needs):
    return [need for need in needs if not is_there(need[0])]


def require(needs, install=False):
    """Returns when everything is there; with `install` true it is installed first (needs root)."""
    lacking = missing(needs)
    if lacking and install:
        install_packages([package for _, package, _ in lacking])
        lacking = missing(needs)
    if not lacking:
        return
    lines = [f"  {package}: {name} {purpose}" for name, package, purpose in lacking]
    names = " ".join(sorted({package for _, package, _ in lacking}))
    raise SoftroceError(
        "this machine lacks:\n" + "\n".join(lines) + "\n"
        f"Install with: apt-get install --no-install-recommends {names}\n"
        "or let the tool do it (as root): softroce run --install -- COMMAND")


def install_packages(names):
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for arguments in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *sorted(set(names))]):
        if program("apt-get") is None:
            return
        done = subprocess.run(["apt-get", *arguments], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise SoftroceError(f"`apt-get {' '.join(arguments)}` failed with status {done.returncode}:\n"
                                + done.stdout[-2000:])
