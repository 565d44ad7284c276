"""What memory is left: the `auto` of budgets."""
from __future__ import annotations

import os

from ._lib import Call, encode, ffi, lib


def available_memory(*, proc_root: str | os.PathLike[str] = "/proc",
                     cgroup_root: str | os.PathLike[str] = "/sys/fs/cgroup") -> int:
    """Bytes this process may still take, never negative.

    The least of MemAvailable, of limit - (use - inactive file pages) at every level of its cgroups
    (v2 and v1), and of RLIMIT_AS and RLIMIT_DATA minus what it uses. IoError where nothing tells.
    """
    call = Call()
    out = ffi.new("int64_t *")
    call.check(lib.cutset_available_memory(out, encode(proc_root, "proc_root"),
                                           encode(cgroup_root, "cgroup_root"), call.err))
    return int(out[0])
