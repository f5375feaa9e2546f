"""HTTP session for exporters: a forked child opens connections of its own.

A server that forks after init() would otherwise have all its workers write on
one connection, and each read what another was answered.
"""

from __future__ import annotations

# requests imports it with its first request. A process that is forked meanwhile
# would wait for the lock of that import for ever.
import netrc  # noqa: F401
import os
from typing import Any, Optional

import requests
from requests.adapters import HTTPAdapter


class ForkSafeSession(requests.Session):
    """A session that does not share connections, nor their locks, with the process it was forked from."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Send a request on a connection of this process."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self.mount("https://", HTTPAdapter())
            self.mount("http://", HTTPAdapter())
        return super().send(request, **options)


def exporter_session() -> Optional[requests.Session]:
    """Return a session for one exporter; None where the environment names a provider of its own."""
    if any(name.endswith("_CREDENTIAL_PROVIDER") and name.startswith("OTEL_PYTHON_") for name in os.environ):
        return None
    return ForkSafeSession()
