/* The public call on memory. */
#include "base/avail.h"

cutset_status cutset_available_memory(int64_t *out, const char *proc_root, const char *cgroup_root,
                                      cutset_error *err)
{
    return cs_available(out, proc_root != NULL ? proc_root : "/proc",
                        cgroup_root != NULL ? cgroup_root : "/sys/fs/cgroup", err);
}
