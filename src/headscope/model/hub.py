"""Whether the model hub can be reached at all, found out at once instead of after many retries."""

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies

from huggingface_hub import constants


def is_reachable() -> bool:
    """Whether the hub's name resolves; behind a proxy only the proxy can tell, so we let it try."""
    if constants.HF_HUB_OFFLINE:
        return False
    if getproxies():
        return True
    try:
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, 443)
    except OSError:
        return False
    return True
