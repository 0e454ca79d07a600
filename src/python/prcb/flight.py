# SPDX-License-Identifier: BSD-2-Clause
"""Asks the flight recorder, `prcb flight`, to keep the last seconds in a file."""
from __future__ import annotations

import os
import socket

SOCKET = "/run/prcb-flight.socket"


def save(reason: str) -> bool:
    """As prcb_flight_save(3): sends the question and waits for nothing. False: no prcb flight runs
    that takes one of this user."""
    message = b"0\n\n" + reason.encode("utf-8", "replace")[:100]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(message, os.environ.get("PRCB_FLIGHT_SOCKET") or SOCKET)
    except OSError:
        return False
    return True
