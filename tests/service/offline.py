"""`python -m tests.service.offline MODEL`, in a network of its own without any way out: starts the service, translates.

Prints the translation of "Please wait.", and how far an attempt to reach another host came.
"""

import fcntl
import json
import socket
import struct
import subprocess
import sys
import urllib.request

GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1  # of ioctl(2), netdevice(7)


def bring_up(device: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        asked = struct.pack("16sh14x", device, 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(control, GET_FLAGS, asked), 16)
        fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh14x", device, flags | UP))


def outside() -> str:
    """What comes of a connection to an address that belongs to documentation (RFC 5737)."""
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=5)
    except OSError as error:
        return str(error)
    return "connected"


def main(model: str) -> None:
    bring_up(b"lo")
    command = [
        sys.executable,
        "-m",
        "service",
        "--model",
        model,
        "--port",
        "0",
        "--device",
        "cpu",
        "--log-json",
        "true",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if '"listening"' in line:
                break
        else:
            sys.exit("".join(said))
        url = f"http://127.0.0.1:{json.loads(said[-1])['port']}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        found = {}
        for source in ("en", "auto"):
            body = json.dumps({"q": "Please wait.", "source": source, "target": "de"}).encode()
            request = urllib.request.Request(f"{url}/translate", body, {"Content-Type": "application/json"})
            with opener.open(request, timeout=120) as answer:
                found[source] = json.load(answer)["translatedText"]
        for path in ("", "languages", "frontend/settings", "readyz"):
            with opener.open(f"{url}/{path}", timeout=120) as answer:
                answer.read()
        process.terminate()
        process.stderr.read()
        print(json.dumps({"translated": found, "outside": outside(), "status": process.wait()}))


if __name__ == "__main__":
    main(sys.argv[1])
