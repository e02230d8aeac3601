"""Passes a guest's output on as it comes, up to the end marker; with two guests each line says whose it is."""
import os


class Output:
    def __init__(self, descriptor, end_marker, label=""):
        self.descriptor = descriptor
        self.marker = end_marker.encode() + b"\n"
        self.label = label.encode()
        self.held = b""  # may be the start of the marker
        self.line = b""  # an unfinished line, kept only when lines are labelled
        self.ended = False

    def feed(self, data):
        if self.ended:
            return
        self.held += data
        position = self.held.find(self.marker)
        if position >= 0:
            ready, self.held, self.ended = self.held[:position], b"", True
        else:
            # Hold back no more than that, so that prompts without a newline appear at once.
            keep = next((count for count in range(min(len(self.marker) - 1, len(self.held)), 0, -1)
                         if self.marker.startswith(self.held[-count:])), 0)
            cut = len(self.held) - keep
            ready, self.held = self.held[:cut], self.held[cut:]
        write_all(self.descriptor, self.labelled(ready) if self.label else ready)

    def labelled(self, ready):
        lines = (self.line + ready).split(b"\n")
        self.line = lines.pop()
        if self.ended and self.line:
            lines.append(self.line)
        return b"".join(self.label + line + b"\n" for line in lines)

    def finish(self):
        """Writes what is left when the guest went away without its end marker."""
        self.feed(b"\n" + self.marker if self.label and (self.line or self.held) else self.marker)


def write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view):]
