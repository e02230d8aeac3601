"""The ways a run can end that are not the command's own exit status."""

import signal

# Each ends a run in good order.
stop_signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The command's own status is passed through; these are the tool's, chosen as `timeout` and `docker run` do.
status_time_limit = 124
status_tool_failed = 125


class SoftroceError(Exception):
    """Something the user can act on: the text says what failed, why, and what to do next."""


class Interrupted(Exception):
    """A signal asked us to stop; `signal_number` decides the exit status (128 + number)."""

    def __init__(self, signal_number):
        super().__init__(f"stopped by signal {signal_number}")
        self.signal_number = signal_number


class NotUp(SoftroceError):
    """A guest did not boot in time; no command has begun."""
