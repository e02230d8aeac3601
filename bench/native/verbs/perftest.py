"""Runs Debian's perftest for one piece of work and reads its output into the rows of weft-native-verbs."""
import itertools
import json
import os
import re
import statistics
import subprocess
import time

programs = {"send": ["ib_send"], "write": ["ib_write"], "read": ["ib_read"],
            "fetch_add": ["ib_atomic"]}  # perftest has nothing for write_with_immediate
extra = {"fetch_add": ["-A", "FETCH_AND_ADD"]}
inline_limit = 64
ports = itertools.count(18600 + os.getpid() % 200 * 40)


def port():
    """Another one each time."""
    return next(ports)


metrics = {"latency": ["latency_p50_us", "latency_p99_us"], "rate": ["rate_mps"], "bandwidth": ["bandwidth_mbps"]}


class PerftestError(Exception):
    pass


def signal_interval(depth, batch):
    """As in weft-native-verbs, except that perftest wants every list to end with a completion."""
    return batch if batch > 1 else max(1, min(64, depth // 4))


def command(work, device, gid_index, port):
    operation, kind = work["operation"], work["kind"]
    if operation not in programs:
        raise PerftestError(f"perftest has no test of {operation}; it has: {', '.join(programs)}")
    arguments = [programs[operation][0] + ("_lat" if kind == "latency" else "_bw"), *extra.get(operation, []),
                 "-d", device, "-x", str(gid_index), "-p", str(port), "-n", str(work["operations"]), "-F"]
    if operation != "fetch_add":
        arguments += ["-s", str(work["size"])]
    if operation in ("send", "write") and work["size"] <= inline_limit:
        arguments += ["-I", str(work["size"])]
    if kind != "latency":
        # -N: no search for a peak, which reads the clock at each post.
        arguments += ["-t", str(work["depth"]), "-Q", str(signal_interval(work["depth"], work["batch"])), "-N"]
        if work["batch"] > 1:
            arguments += ["-l", str(work["batch"])]
    return arguments


def is_listening(wanted):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as file:
            for line in file:
                fields = line.split()
                if len(fields) > 3 and fields[1].endswith(f":{wanted:04X}") and fields[3] == "0A":
                    return True
    return False


def wait_until_listening(wanted, server, name):
    deadline = time.monotonic() + 20
    while not is_listening(wanted):
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            said = server.stdout.read()[-1500:] if server.stdout else ""
            raise PerftestError(f"{name} did not start:\n{said}")
        time.sleep(0.02)


def parse(work, output):
    """The last line that starts with size and count holds the figures; see the heading above it in the output."""
    lines = [line.split() for line in output.splitlines() if re.match(r"\s*\d+\s+\d+\s+[\d.]", line)]
    if not lines:
        raise PerftestError("perftest printed no figures:\n" + output[-2000:])
    figures = [float(word) for word in lines[-1]]
    if work["kind"] == "latency":  # size, count, least, most, typical, mean, deviation, 99 %, 99.9 %
        return [figures[4], figures[7]]
    # size, count, peak, average, million messages per second: the last is the only one in clear units.
    return [figures[4] * (1 if work["kind"] == "rate" else work["size"])]


def run_once(work, device, gid_index, limit=120):
    """Both sides on this machine; returns the figures in the order of `metrics`.

    Now and then perftest fails to find the processor's frequency and prints zeros: those are no measurement.
    """
    for _ in range(4):
        figures = run_sides(work, device, gid_index, limit)
        if all(figures):
            return figures
    raise PerftestError(f"perftest printed a zero four times in a row for {work}")


def run_sides(work, device, gid_index, limit):
    where = port()
    arguments = command(work, device, gid_index, where)
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as server:
        try:
            wait_until_listening(where, server, f"`{' '.join(arguments)}`")
            done = subprocess.run([*arguments, "127.0.0.1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=limit, check=False)
            if done.returncode != 0:
                raise PerftestError(f"`{' '.join(done.args)}` failed with status {done.returncode}:\n"
                                    f"{done.stdout[-1500:]}")
            server.wait(timeout=20)
        finally:
            if server.poll() is None:
                server.kill()
    return parse(work, done.stdout)


def native_once(program, work, device, gid_index, more=()):
    """One run of weft-native-verbs or weft-same-work: the figures, and its row for the counts."""
    arguments = [program, "-d", device, "-x", str(gid_index), "--operation", work["operation"],
                 "--kind", work["kind"], "-s", str(work["size"]), "--depth", str(work["depth"]), "--batch",
                 str(work["batch"]), "-n", str(work["operations"]), "--runs", "1", *more]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise PerftestError(f"`{' '.join(arguments)}` failed with status {done.returncode}")
    rows = json.loads(done.stdout)
    return [one["native"] for one in rows], rows[0]


def row(work, device, metric, values):
    """The counts follow from the options perftest was given; it does not report them."""
    operations, latency = work["operations"], work["kind"] == "latency"
    batch = 1 if latency else work["batch"]
    if not latency:
        signals = -(-operations // signal_interval(work["depth"], batch))
    elif work["operation"] in ("read", "fetch_add", "write"):
        signals = operations
    else:
        signals = -(-operations // 100)  # perftest's own interval for messages
    return {"provider": "verbs", "fabric": device, "operation": work["operation"], "metric": metric,
            "size": work["size"], "depth": 1 if latency else work["depth"], "batch": batch,
            "native": statistics.median_low(values), "doorbells": -(-operations // batch), "signals": signals,
            "operations": operations, "runs": values, "program": "perftest"}


def works(operations, kinds, sizes, depth, batches, count):
    """The same list, in the same order, as weft-native-verbs makes from the same options."""
    default_sizes = {"latency": [8, 64, 4096], "rate": [8, 64], "bandwidth": [4096, 65536, 1 << 20]}
    default_counts = {"latency": 1000, "rate": 8192, "bandwidth": 512}
    for operation in operations:
        for kind in kinds:
            if operation == "fetch_add" and kind == "bandwidth":
                continue
            for size in [8] if operation == "fetch_add" else sizes or default_sizes[kind]:
                for batch in [1] if kind == "latency" else batches:
                    wanted = count or default_counts[kind]
                    yield {"operation": operation, "kind": kind, "size": size, "depth": depth, "batch": batch,
                           "operations": -(-wanted // batch) * batch}
