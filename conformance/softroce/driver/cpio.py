"""Writes the "newc" archive a kernel unpacks as its first root (see the kernel's early-userspace document)."""


def folder(name):
    return (name, b"", 0o040755)


def file(name, content, permissions):
    return (name, content, 0o100000 | permissions)


def archive(entries):
    out = bytearray()
    for number, (name, content, mode) in enumerate([*entries, ("TRAILER!!!", b"", 0)], start=1):
        encoded = name.encode() + b"\0"
        # inode, mode, user, group, links, time, size, device (2), node (2), name length, check sum
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        out += b"\0" * (-len(out) % 4) + content
        out += b"\0" * (-len(out) % 4)
    return bytes(out)
