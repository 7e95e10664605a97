"""A folder in which the compilers of a server keep what they have learnt, so that a restart begins where it ended.

The folder is named by ``MASKWRIGHT_CACHE``. In it, each vocabulary has a file of its own, named by the fingerprint of its tokens and by our version. Processes of one server share
it: a file is written whole and then put in its place, so a reader sees the old one or the new one.

A file is only read if it belongs to whoever runs the server and nobody else may write it: what is in it is believed. One that is damaged, or of another
version, is told about and passed over, and the server works without it.
"""

from __future__ import annotations

import logging
import os
import pathlib
import stat
import tempfile
import threading

from ._maskwright import VERSION, Compiler
from .errors import Error

logger = logging.getLogger(__name__)

#: How long to wait for more to be compiled before it is saved.
_PAUSE = 5.0


class CacheFile:
    """What one compiler keeps."""

    def __init__(self, compiler: Compiler, folder: str | os.PathLike[str]) -> None:
        self._compiler = compiler
        self.path = pathlib.Path(folder) / f"{compiler.vocabulary.fingerprint:032x}-{VERSION}.maskwright"
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def load(self) -> int:
        """Takes over what was saved; says how many constraints are ready. Nothing that is wrong with the file is an error."""
        try:
            with open(self.path, "rb") as file:
                problem = _distrust(os.fstat(file.fileno()))
                if problem is not None:
                    logger.warning("the cache %s is not read: %s", self.path, problem)
                    return 0
                content = file.read()
        except FileNotFoundError:
            return 0
        except OSError as error:
            logger.warning("the cache %s cannot be read: %s", self.path, error)
            return 0
        try:
            ready = self._compiler.load(content)
        except (Error, ValueError) as error:
            logger.warning("the cache %s is not used: %s", self.path, error)
            return 0
        logger.info("%d constraints are ready from %s", ready, self.path)
        return ready

    def save(self) -> None:
        """Writes the file anew. A folder that cannot be written to is told about, and is no error."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        try:
            content = self._compiler.save()
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=self.path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.replace(name, self.path)
            except BaseException:
                os.unlink(name)
                raise
        except (Error, OSError) as error:
            logger.warning("the cache %s cannot be written: %s", self.path, error)

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


def _distrust(found: os.stat_result) -> str | None:
    """Why a file is not to be believed."""
    if not stat.S_ISREG(found.st_mode):
        return "it is no plain file"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return "it belongs to somebody else"
    if os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others may write it; take that right away with chmod go-w"
    return None
