/* How much memory this process may still take. */
#ifndef CS_BASE_AVAIL_H
#define CS_BASE_AVAIL_H

#include "base/error.h"

/* Bytes, never negative. `proc` and `cgroups`: where /proc and /sys/fs/cgroup are. CUTSET_SYSTEM:
 * nothing there tells. */
cutset_status cs_available(int64_t *out, const char *proc, const char *cgroups, cutset_error *err);

#endif
