"""Gets Debian's stock kernel into the cache folder without installing it, and builds the guest's first disk."""
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

from . import cpio
from .errors import SoftroceError
from .packages import fetch_needs, install_packages, program, require

# What the guest cannot do without before its root is mounted, and for RDMA. crc32_generic: rxe asks the
# crypto layer for "crc32" by name, so no dependency is recorded and nothing would pull it in.
modules_wanted = ["crc32_generic", "virtio_pci", "virtio_console", "virtio_net", "9pnet_virtio", "9p", "overlay",
                  "veth", "ib_uverbs", "rdma_rxe", "rdma_ucm"]
guest_folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "guest")


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "weft", "softroce")


class Kernel:
    """One unpacked kernel in the cache: `image`, `modules` (holds VERSION/) and `version`."""

    def __init__(self, folder):
        self.folder = folder
        self.version = os.path.basename(folder)
        self.image = os.path.join(folder, "boot", "vmlinuz-" + self.version)
        self.modules = os.path.join(folder, "lib", "modules")

    def initial_disk(self):
        """Path of the initial RAM disk; rebuilt when the guest's first script or busybox changed."""
        with open(os.path.join(guest_folder, "first-stage"), "rb") as file:
            first_stage = file.read()
        with open("/bin/busybox", "rb") as file:
            busybox = file.read()
        key = hashlib.sha256(first_stage + busybox + repr(modules_wanted).encode()).hexdigest()[:16]
        path = os.path.join(self.folder, f"initial-{key}.cpio")
        if os.path.exists(path):
            return path
        entries = [cpio.folder(name) for name in ("bin", "dev", "proc", "sys", "modules", "lower", "upper", "root")]
        entries += [cpio.file("bin/busybox", busybox, 0o755), cpio.file("init", first_stage, 0o755)]
        for index, module in enumerate(self._load_order()):
            with open(os.path.join(self.modules, self.version, module), "rb") as file:
                entries.append(cpio.file(f"modules/{index:03}-{os.path.basename(module)}", file.read(), 0o644))
        write_whole(path, cpio.archive(entries))
        return path

    def _load_order(self):
        """Module files so ordered that each comes after those it needs."""
        needs, by_name = {}, {}
        with open(os.path.join(self.modules, self.version, "modules.dep"), encoding="utf-8") as file:
            for line in file:
                module, _, rest = line.partition(":")
                needs[module] = rest.split()
                by_name[os.path.basename(module).split(".")[0].replace("-", "_")] = module
        order = []
        for name in modules_wanted:
            if name not in by_name:
                raise SoftroceError(f"kernel {self.version} has no module {name}; fetch another one with "
                                    "`softroce fetch --update`")
            module = by_name[name]
            # modules.dep lists the nearest dependency first, so the farthest must be loaded first.
            order += [needed for needed in [*reversed(needs[module]), module] if needed not in order]
        return order


def write_whole(path, content):
    """Writes so that a reader sees the whole file or none, also when two runs do it at once."""
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


def find_kernel():
    """The newest kernel in the cache, or None."""
    base = os.path.join(cache_folder(), "kernels")
    names = [name for name in (os.listdir(base) if os.path.isdir(base) else []) if re.match(r"\d", name)]
    names.sort(key=lambda name: [int(part) for part in re.findall(r"\d+", name)])
    return Kernel(os.path.join(base, names[-1])) if names else None


def get_kernel(update=False, install=False, say=lambda text: None):
    """A kernel ready to boot; downloads it when the cache has none, or when `update` asks for the newest."""
    found = find_kernel()
    if found and not update:
        return found
    require(fetch_needs)
    try:
        os.makedirs(os.path.join(cache_folder(), "kernels"), exist_ok=True)
    except OSError as error:
        raise SoftroceError(f"no folder for the guest's kernel can be made: {error}; set XDG_CACHE_HOME to one with "
                            "500 MB of room") from error
    with open(os.path.join(cache_folder(), "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two first runs at once: the second finds the work done
        found = find_kernel()
        if found and not update:
            return found
        package = newest_package(install)
        version = package.removeprefix("linux-image-")
        if found and found.version == version:
            return found
        say(f"fetching {package} into {cache_folder()} (about 70 MB, once)")
        try:
            return unpack(package, version)
        except SoftroceError:
            if not install:
                raise
        install_packages([])  # lists that are too old name a package that is no longer there
        package = newest_package(install)
        return unpack(package, package.removeprefix("linux-image-"))


def newest_package(install):
    """The name of the package behind linux-image-amd64 (the full kernel: the cloud one has no RDMA)."""
    for last_try in (False, True):
        done = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        match = re.search(r"Depends: (linux-image-[0-9.-]+-amd64)\b", done.stdout)
        if match:
            return match.group(1)
        if last_try or not install:
            break
        install_packages([])  # brings the package lists up to date
    raise SoftroceError("apt does not know linux-image-amd64, so its package lists are missing or this is not "
                        "Debian on amd64. Run `apt-get update` and try again (or `softroce run --install`).")


def unpack(package, version):
    kernels = os.path.join(cache_folder(), "kernels")
    with tempfile.TemporaryDirectory(dir=kernels, prefix="incoming-") as work:
        # The sandbox user of apt may not be able to enter the caller's cache folder.
        download = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package]
        done = subprocess.run(download, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        files = [name for name in os.listdir(work) if name.endswith(".deb")]
        if done.returncode != 0 or len(files) != 1:
            raise SoftroceError(f"`apt-get download {package}` failed with status {done.returncode}:\n"
                                f"{done.stdout[-1500:]}\nIs the network reachable, and are the package lists fresh "
                                "(`apt-get update`)?")
        tree = os.path.join(work, "tree")
        for command in (["dpkg-deb", "-x", os.path.join(work, files[0]), tree],
                        [program("depmod"), "-b", tree, version]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode != 0:
                raise SoftroceError(f"`{' '.join(command)}` failed with status {done.returncode} (is the disk "
                                    f"full? 400 MB are needed):\n{done.stdout[-1500:]}")
        shutil.rmtree(os.path.join(tree, "usr"), ignore_errors=True)
        target = os.path.join(kernels, version)
        os.chmod(tree, 0o755)
        os.rename(tree, target)
    return Kernel(target)
