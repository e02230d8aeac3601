"""How fast this machine's time stamp counter runs.

The guest's clock is built on it. A guest that boots on a busy machine measures it wrongly by a factor (its reference is
emulated and held up), and then all its timeouts are wrong; so it is told instead.
"""
import ctypes
import mmap
import time

# rdtsc; shl rdx, 32; or rax, rdx; ret
read_counter_code = bytes.fromhex("0f31" "48c1e220" "4809d0" "c3")


def counter_khz(seconds=0.1):
    """Kilohertz, or None where the counter cannot be read (a system that forbids executable memory)."""
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    memory.write(read_counter_code)
    read_counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))

    def both():
        # Of some readings the one least disturbed between its two clocks.
        return min(((time.perf_counter_ns() - before, before, count) for before, count in
                    ((time.perf_counter_ns(), read_counter()) for _ in range(20))))[1:]

    start_time, start_count = both()
    time.sleep(seconds)
    end_time, end_count = both()
    return round((end_count - start_count) * 1e6 / (end_time - start_time))
