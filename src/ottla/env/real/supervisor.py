"""Messages to the service manager that started this process: one datagram each to `$NOTIFY_SOCKET`, as sd_notify(3) does.

The address is a path, or a name in the abstract namespace that begins with `@`. The variables are taken out of the environment,
so that helper processes do not speak for the node. A full socket is not waited for: the loop must not be held by its observer.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import MutableMapping

logger = logging.getLogger("ottla.node")

_ADDRESS, _WATCHDOG_US, _WATCHDOG_PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
VARIABLES = (_ADDRESS, _WATCHDOG_US, _WATCHDOG_PID)


class NotifySocket:
    """`Supervisor` for systemd, and for everything that speaks its protocol."""

    def __init__(self, address: str, watchdog_s: float | None) -> None:
        self.watchdog_s = watchdog_s
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0))
        self._socket.setblocking(False)
        self._has_complained = False

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str] = os.environ) -> NotifySocket | None:
        """The socket that the environment names; None if it names none. Takes the variables out of it."""
        address, watchdog_us, watchdog_pid = (environment.pop(name, "") for name in VARIABLES)
        if not address:
            return None
        if not address.startswith(("/", "@")):
            logger.warning(
                "NOTIFY_SOCKET=%s is neither a path nor an abstract name: the service manager hears nothing", address
            )
            return None
        is_watched = watchdog_us.isdigit() and int(watchdog_us) > 0 and watchdog_pid in ("", str(os.getpid()))
        return cls(address, int(watchdog_us) / 1e6 if is_watched else None)

    def tell(self, message: str) -> bool:
        try:
            self._socket.sendto(message.encode(), self._address)
        except BlockingIOError:
            return False
        except OSError as error:  # nobody listens any more: telling it again would not help
            if not self._has_complained:
                self._has_complained = True
                logger.warning("the service manager's socket takes no message: %s", error.strerror or error)
        return True

    def close(self) -> None:
        self._socket.close()
