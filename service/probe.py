"""`python -m service.probe`: status 0 if the service that the same environment starts is ready, for HEALTHCHECK.

It imports nothing but a little of Python's own library, so that it can be run every few seconds.
"""

import os
import sys
from http.client import HTTPConnection, HTTPException

PATIENCE = 4.0  # seconds
EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # and where such a listener is reached


def main() -> int:
    host = os.environ.get("MT_HOST") or "127.0.0.1"
    connection = HTTPConnection(EVERY_ADDRESS.get(host, host), int(os.environ.get("MT_PORT") or 8000), timeout=PATIENCE)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        said = answer.read().decode()
    except (OSError, HTTPException) as error:
        print(f"not ready: {error}", file=sys.stderr)
        return 1
    finally:
        connection.close()
    print(said)
    return 0 if answer.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())
