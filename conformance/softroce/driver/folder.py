"""The folder of one running session: what the guests read, the control socket, the consoles' logs."""
import fcntl
import glob
import os
import secrets
import shlex
import shutil
import tempfile
import time

from .errors import SoftroceError
from .kernel import guest_folder

prefix = "softroce-"
# Set anew in the guest, or meaningless there.
not_passed_on = ("SOFTROCE_", "SHLVL", "_", "PWD", "OLDPWD", "SSH_", "DBUS_", "XDG_RUNTIME_DIR")


class Folder:
    def __init__(self):
        sweep()
        self.path = tempfile.mkdtemp(prefix=prefix)
        self.shared = os.path.join(self.path, "shared")
        self.control = os.path.join(self.path, "control")
        self.end_marker = "softroce-end-" + secrets.token_hex(16)
        os.mkdir(self.shared)
        self.lock = open(os.path.join(self.path, "lock"), "w", encoding="ascii")  # held while we live
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def console(self, host):
        return os.path.join(self.path, f"console{host}.log")

    def write_guest_files(self, settings, command):
        """Writes what the guest's second stage reads: its settings, the environment, the command."""
        for name in ("second-stage", "softroce-in-guest"):
            shutil.copy(os.path.join(guest_folder, name), self.shared)
        settings = dict(settings, end_marker=self.end_marker)
        self._write("settings", "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in settings.items()))
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in os.environ.items()
                 if name.isidentifier() and not name.startswith(not_passed_on)]
        path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
        lines.append(f"export PATH={shlex.quote('/run/softroce/bin:' + path + ':/usr/sbin:/sbin')}\n")
        lines.append(f"cd {shlex.quote(os.getcwd())}\n")
        environment = "".join(lines)
        self._write("interactive", environment + "[ -x /bin/bash ] && exec /bin/bash -i\nexec /bin/sh -i\n")
        if command:
            # A command given as one word with spaces is a mistake the shell reports as 127, like any other.
            self._write("command", environment + "exec " + " ".join(shlex.quote(word) for word in command) + "\n")

    def _write(self, name, text):
        with open(os.path.join(self.shared, name), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)
        self.lock.close()

    def close_but_keep(self):
        for name in ("control", "lock"):
            if os.path.lexists(os.path.join(self.path, name)):
                os.unlink(os.path.join(self.path, name))
        self.lock.close()


def candidates():
    return [path for path in glob.glob(os.path.join(tempfile.gettempdir(), prefix + "*"))
            if os.path.exists(os.path.join(path, "lock")) and os.stat(path).st_uid == os.getuid()]


def is_running(path):
    try:
        with open(os.path.join(path, "lock"), encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def sweep():
    """Removes the folders of sessions that were killed in a way no program can clean up after."""
    for path in candidates():
        # A young folder may belong to a session that is just about to lock it.
        if not is_running(path) and time.time() - os.stat(path).st_mtime > 10:
            shutil.rmtree(path, ignore_errors=True)


def find_running(wanted):
    """The folder of the session meant: the one named, or the only one that runs."""
    running = [path for path in candidates() if is_running(path)]
    if wanted:
        running = [path for path in running if os.path.realpath(path) == os.path.realpath(wanted)]
    if len(running) == 1:
        return running[0]
    if wanted:
        raise SoftroceError(f"no session runs in {wanted}")
    if running:
        raise SoftroceError("several sessions run; say which with --session: " + " ".join(sorted(running)))
    raise SoftroceError("no session runs; start one with `softroce run`")
