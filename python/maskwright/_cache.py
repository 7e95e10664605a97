"""A folder in which the compilers of a server keep what they have learnt, so that a restart begins where it ended.

The folder is named by ``MASKWRIGHT_CACHE``. In it, each vocabulary has a file of its own, named by the fingerprint of its tokens and by our version. Processes of one server share
it: a file is written whole and then put in its place, so a reader sees the old one or the new one; and who writes it keeps the constraints of what another process has put there since.

A file is only read if it belongs to whoever runs the server and nobody else may write it: what is in it is believed. One that is damaged, or of another
version, is told about and passed over, and the server works without it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import stat
import tempfile
import threading
import time
from collections.abc import Iterator

from ._maskwright import VERSION, Compiler
from .errors import Error

logger = logging.getLogger(__name__)

#: How long to wait for more to be compiled before it is saved.
_PAUSE = 5.0
#: How long to wait for another process that writes.
_PATIENCE = 10.0


class CacheFile:
    """What one compiler keeps."""

    def __init__(self, compiler: Compiler, folder: str | os.PathLike[str]) -> None:
        self._compiler = compiler
        self.path = pathlib.Path(folder) / f"{compiler.vocabulary.fingerprint:032x}-{VERSION}.maskwright"
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        # The file that was read or written last.
        self._known: tuple[int, ...] | None = None
        # What another process has written last.
        self._others: bytes | None = None

    def load(self) -> int:
        """Takes over what was saved; says how many constraints are ready. Nothing that is wrong with the file is an error."""
        content = self._read()
        if content is None:
            return 0
        try:
            ready = self._compiler.load(content)
        except (Error, ValueError) as error:
            logger.warning("the cache %s is not used: %s", self.path, error)
            return 0
        logger.info("%d constraints are ready from %s", ready, self.path)
        return ready

    def _read(self) -> bytes | None:
        """What is in the file, unless it is the one that is known."""
        try:
            # A pipe in the place of the file must not be waited for.
            with open(self.path, "rb", opener=lambda path, flags: os.open(path, flags | getattr(os, "O_NONBLOCK", 0))) as file:
                found = os.fstat(file.fileno())
                problem = _distrust(found)
                if problem is not None:
                    logger.warning("the cache %s is not read: %s", self.path, problem)
                    return None
                if _identity(found) == self._known:
                    return None
                self._known = _identity(found)
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            logger.warning("the cache %s cannot be read: %s", self.path, error)
            return None

    def save(self) -> None:
        """Writes the file anew. A folder that cannot be written to is told about, and is no error."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _alone(self.path.with_suffix(".lock")):
                self._others = self._read() or self._others
                self._write(self._compiler.save(self._others))
        except (Error, OSError) as error:
            logger.warning("the cache %s cannot be written: %s", self.path, error)

    def _write(self, content: bytes) -> None:
        handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=self.path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                written = _identity(os.fstat(file.fileno()))
            os.replace(name, self.path)
        except BaseException:
            os.unlink(name)
            raise
        self._known = written

    def save_soon(self) -> None:
        """Writes the file when nothing was compiled for a while."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(_PAUSE, self.save)
            self._timer.daemon = True
            self._timer.start()


def opened(compiler: Compiler) -> CacheFile | None:
    """The cache of a compiler, loaded, if ``MASKWRIGHT_CACHE`` names a folder."""
    folder = os.environ.get("MASKWRIGHT_CACHE", "").strip()
    if not folder:
        return None
    cache = CacheFile(compiler, folder)
    cache.load()
    return cache


@contextlib.contextmanager
def _alone(path: pathlib.Path) -> Iterator[None]:
    """No other process that does the same is in here. Where there are no locks, the last one wins; who waits for too long gives up with an ``OSError``."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(path, "ab", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOFOLLOW, 0o600)) as file:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise
                time.sleep(0.05)
        yield


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _distrust(found: os.stat_result) -> str | None:
    """Why a file is not to be believed."""
    if not stat.S_ISREG(found.st_mode):
        return "it is no plain file"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return "it belongs to somebody else"
    if os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others may write it; take that right away with chmod go-w"
    return None
