"""`python -m tests.service.offline`, in a network of its own without any way out: starts the service, translates.

Prints the translation of "Please wait.", and how far an attempt to reach another host came.
"""

import fcntl
import json
import socket
import struct

from scripts.attack.target import running

GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1  # of ioctl(2), netdevice(7)


def bring_up(device: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", device, 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(control, GET_FLAGS, request), 16)
        fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh14x", device, flags | UP))


def outside() -> str:
    """What comes of a connection to an address that belongs to documentation (RFC 5737)."""
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=5)
    except OSError as error:
        return str(error)
    return "connected"


if __name__ == "__main__":
    bring_up(b"lo")
    with running() as service:
        answers = [service.translate("Please wait.", {"source": code}) for code in ("en", "auto")]
        translated = [answer.json["translatedText"] for answer in answers]
        paths = ("/", "/languages", "/frontend/settings", "/readyz")
        statuses = {service.request("GET", path).status for path in paths}
        print(json.dumps([translated, list(statuses), outside(), service.stop()]))
