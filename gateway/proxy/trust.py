"""Which certificates engines may prove themselves with."""

import functools
import ssl


def trusted() -> ssl.SSLContext:
    """For connections to engines: what the system trusts, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name instead.

    Reading that takes up to a tenth of a second in which no request goes on, so a process does it once, when the first
    engine wants it. Nobody may change what is given: all connections share it.
    """
    return _read(ssl.get_default_verify_paths())


@functools.lru_cache(maxsize=1)
def _read(_paths: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    return ssl.create_default_context()
