"""A folder in which the compilers of a server save what they have learnt, so that a restart continues from there.

The environment variable ``MASKWRIGHT_CACHE`` names the folder. Each vocabulary has its own file, named by the
fingerprint of its tokens and by our version. The processes of one server share it: a file is written completely and
then renamed, so a reader sees the old or the new one. A process that writes it keeps the constraints that another
process has added since.

The content of a file is trusted, so a file is only read if it belongs to the user of the server and no other user can
write it. If a file is damaged, or of another version, a warning is logged, and the server works without it.
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

#: How long to wait for further compilations before saving, in seconds.
_PAUSE = 5.0
#: How long to wait for another process that is writing, in seconds.
_PATIENCE = 10.0


class CacheFile:
    """The cache file of one compiler."""

    def __init__(self, compiler: Compiler, folder: str | os.PathLike[str]) -> None:
        self._compiler = compiler
        self.path = pathlib.Path(folder) / f"{compiler.vocabulary.fingerprint:032x}-{VERSION}.maskwright"
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        # The identity of the file that was read or written last.
        self._known: tuple[int, ...] | None = None
        # The content that another process has written last.
        self._others: bytes | None = None

    def load(self) -> int:
        """Loads what was saved and returns how many constraints are ready. A bad file is not an error."""
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
        """Reads the file, unless it is the known one."""
        try:
            # Opening a pipe instead of the file must not block.
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
        """Writes the file. If the folder is not writable, that is logged and is not an error."""
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
    """Returns the loaded cache of a compiler if ``MASKWRIGHT_CACHE`` names a folder."""
    folder = os.environ.get("MASKWRIGHT_CACHE", "").strip()
    if not folder:
        return None
    cache = CacheFile(compiler, folder)
    cache.load()
    return cache


@contextlib.contextmanager
def _alone(path: pathlib.Path) -> Iterator[None]:
    """Locks the file against other processes. Without file locks the last writer wins. Raises ``OSError`` after
    waiting for too long."""
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
    """Returns the reason why a file is not trusted, or ``None``."""
    if not stat.S_ISREG(found.st_mode):
        return "it is no plain file"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return "it belongs to somebody else"
    if os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others may write it; take that right away with chmod go-w"
    return None
