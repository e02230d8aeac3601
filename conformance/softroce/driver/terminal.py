"""The user's terminal while it is connected to a shell in a guest."""
import os
import sys
import termios
import tty


class RawTerminal:
    """Passes every key on unchanged until `restore`. Does nothing when standard input is no terminal."""

    def __init__(self):
        self.before = None
        if sys.stdin.isatty():
            self.before = termios.tcgetattr(0)
            tty.setraw(0)

    def size_command(self):
        """A console knows no window size: tell the shell, without leaving it in the history."""
        if self.before is None:
            return b""
        columns, lines = os.get_terminal_size(0)
        return f" stty rows {lines} cols {columns}; clear\r".encode()

    def restore(self):
        if self.before is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, self.before)
            self.before = None
