"""Health check of a container: `python -m service.probe` exits with status 0 if the service is ready.

It reads the service's address from the same environment variables as the service. It imports only a few modules of the
standard library, so that it can run every few seconds.
"""

import os
import sys
from http.client import HTTPConnection, HTTPException

TIMEOUT = 4.0  # seconds
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # address at which to reach a service that listens on all addresses


def main() -> int:
    host = os.environ.get("MT_HOST") or "127.0.0.1"
    connection = HTTPConnection(LOOPBACK.get(host, host), int(os.environ.get("MT_PORT") or 8000), timeout=TIMEOUT)
    try:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        body = response.read().decode()
    except (OSError, HTTPException) as error:
        print(f"not ready: {error}", file=sys.stderr)
        return 1
    finally:
        connection.close()
    print(body)
    return 0 if response.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())
