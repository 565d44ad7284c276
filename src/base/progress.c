/* Progress functions that are dear are asked seldom.
 *
 * A progress function of another language may cost a lock that other threads hold for milliseconds
 * (Python's), while the library asks thousands of times a second. The clock decides only when to
 * ask, never what a plan holds.
 */
#include <time.h>

#include "cutset.h"

int cutset_progress_seldom(void *payload, const char *phase, uint64_t done, uint64_t total)
{
    cutset_seldom *s = payload;
    struct timespec now;
    if (s->inner.call == NULL || clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
    const int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (s->last_ns == 0) s->last_ns = ns;
    if (ns - s->last_ns < s->interval_ns) return 0;
    const int answer = s->inner.call(s->inner.payload, phase, done, total);
    s->last_ns = ns;
    return answer;
}
