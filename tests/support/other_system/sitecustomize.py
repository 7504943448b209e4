"""Make Python look like Windows to vidkin's own code only; used by putting this folder on PYTHONPATH.

Modules imported by vidkin (``os``, ``signal``, ``socket``, ...) lack the names that only POSIX has, POSIX modules
cannot
be imported, ``sys.platform`` is that of Windows, sockets are shared instead of inherited, and files that this process
has open cannot be renamed, replaced or removed. The standard library and other packages, which others have tested on
Windows, see the real system. Child processes inherit PYTHONPATH.
"""

from __future__ import annotations

import builtins
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
from types import ModuleType
from typing import Any

_OS_NAMES = """
    O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_SYNC O_TMPFILE WIFEXITED
    WEXITSTATUS WIFSIGNALED WIFSTOPPED WTERMSIG WNOHANG chown chroot confstr copy_file_range ctermid eventfd fchdir
    fchmod fchown fdatasync fork forkpty fpathconf fstatvfs getegid geteuid getgid getgrouplist getgroups getloadavg
    getpgid getpgrp getpriority getresgid getresuid getsid getuid getxattr initgroups killpg lchown listxattr lockf
    login_tty major makedev memfd_create minor mkfifo mknod nice openpty pathconf pidfd_open pipe2 posix_fadvise
    posix_fallocate posix_openpt posix_spawn posix_spawnp pread preadv pwrite pwritev readv register_at_fork
    removexattr sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getparam sched_getscheduler
    sched_param sched_rr_get_interval sched_setaffinity sched_setparam sched_setscheduler sched_yield sendfile
    set_blocking setegid seteuid setgid setgroups setpgid setpriority setregid setresgid setresuid setreuid setsid
    setuid setxattr splice statvfs sync sysconf sysconf_names tcgetpgrp tcsetpgrp ttyname uname unshare wait wait3
    wait4 waitid writev
"""
_SIGNALS = ("SIG_DFL", "SIG_IGN", "SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM")
_SIGNAL_FUNCTIONS = ("alarm", "pause", "setitimer", "getitimer", "siginterrupt", "sigwait", "sigtimedwait")
_POSIX_NAMES = {
    "os": _OS_NAMES.split(),
    "signal": [
        name
        for name in dir(signal)
        if (name.startswith("SIG") and name not in _SIGNALS)
        or name.startswith(("pthread_", "sigpending", "pidfd_", "ITIMER_", *_SIGNAL_FUNCTIONS))
    ],
    "socket": ["AF_UNIX", "MSG_DONTWAIT", "SO_REUSEPORT", "recv_fds", "send_fds", "sethostname"],
}
_POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
_REAL_IMPORT = builtins.__import__


class _Seen(ModuleType):
    """A module as vidkin sees it: a proxy without some names and with replacements for others."""

    def __init__(self, real: ModuleType, missing: list[str], instead: dict[str, Any]) -> None:
        super().__init__(real.__name__)
        super().__setattr__("_parts", (real, frozenset(missing), instead))

    def __getattr__(self, name: str) -> Any:
        real, missing, instead = super().__getattribute__("_parts")
        if name in missing:
            raise AttributeError(f"module {real.__name__!r} has no attribute {name!r} on Windows")
        return instead[name] if name in instead else getattr(real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(super().__getattribute__("_parts")[0], name, value)

    def __dir__(self) -> list[str]:
        real, missing, _ = super().__getattribute__("_parts")
        return [name for name in dir(real) if name not in missing]


class _Popen(subprocess.Popen):  # type: ignore[type-arg]
    def __init__(self, *args: Any, **settings: Any) -> None:
        assert not settings.get("pass_fds"), "pass_fds not supported on Windows."
        if settings.get("preexec_fn") is not None:
            raise ValueError("preexec_fn is not supported on Windows platforms")
        settings.pop("creationflags", None)
        super().__init__(*args, **settings)


def _get_context(method: str | None = None) -> Any:
    if method in ("fork", "forkserver"):
        raise ValueError(f"cannot find context for {method!r}")
    return multiprocessing.get_context("spawn")


# As on Windows, a socket is passed to another process as bytes that identify it.


class _Socket(socket.socket):
    def share(self, process: int) -> bytes:
        """Wait in a thread for the other process to connect and receive a copy."""
        address = f"\0vidkin-{os.getpid()}-{process}-{self.fileno()}"
        copy, listener = self.dup(), socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen(1)

        def hand_over() -> None:
            with copy, listener, listener.accept()[0] as connection:
                socket.send_fds(connection, [b"x"], [copy.fileno()])

        threading.Thread(target=hand_over, daemon=True).start()
        return address.encode()


def _fromshare(content: bytes) -> socket.socket:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(content.decode())
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    return _Socket(fileno=descriptors[0])


def _socketpair() -> tuple[socket.socket, socket.socket]:
    first, second = socket.socketpair()
    return _Socket(fileno=first.detach()), _Socket(fileno=second.detach())


_SEEN: dict[str, ModuleType] = {
    "os": _Seen(os, _POSIX_NAMES["os"], {"name": "nt"}),
    "signal": _Seen(signal, _POSIX_NAMES["signal"], {}),
    "socket": _Seen(
        socket,
        _POSIX_NAMES["socket"],
        {"socket": _Socket, "fromshare": _fromshare, "socketpair": _socketpair},
    ),
    "subprocess": _Seen(subprocess, [], {"Popen": _Popen}),
    "multiprocessing": _Seen(multiprocessing, [], {"get_context": _get_context}),
    "sys": _Seen(sys, [], {"platform": "win32"}),
}


def _is_ours(space: Any) -> bool:
    return space is not None and str(space.get("__name__", "")).partition(".")[0] == "vidkin"


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    if level == 0 and _is_ours(globals):
        top = name.partition(".")[0]
        if top in _POSIX_MODULES:
            raise ModuleNotFoundError(f"No module named {top!r} on Windows", name=top)
        # `import os.path` gives os, `from os.path import join` gives the path module.
        if top in _SEEN and (name == top or not fromlist):
            _REAL_IMPORT(name, globals, locals, fromlist, level)
            return _SEEN[top]
    return _REAL_IMPORT(name, globals, locals, fromlist, level)


builtins.__import__ = _import


# Windows cannot rename, replace or remove an open file. The check applies to all callers, because libraries act for us.


def _opened() -> set[tuple[int, int]]:
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            state = os.stat(f"/proc/self/fd/{descriptor}")
        except OSError:
            continue  # the descriptor of the listing itself
        found.add((state.st_dev, state.st_ino))
    return found


def _refusing(operation: Any, checked: int) -> Any:
    def operate(*paths: Any, **settings: Any) -> Any:
        # Arguments such as dir_fd are used only on POSIX.
        if not any(value is not None for value in settings.values()):
            opened = _opened()
            for path in paths[:checked]:
                try:
                    state = os.lstat(path)
                except OSError:
                    continue
                if (state.st_dev, state.st_ino) in opened and not os.path.isdir(path):
                    raise PermissionError(13, "The process cannot access the file because it is open", os.fspath(path))
        return operation(*paths, **settings)

    return operate


_PATHS = {"replace": 2, "rename": 2, "unlink": 1, "remove": 1}
for _name, _count in _PATHS.items():
    setattr(os, _name, _refusing(getattr(os, _name), _count))
