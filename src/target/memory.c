/* What one weight adds to the forecasts of an engine: its bytes times a factor in millionths,
 * rounded up. */
#include "target/target.h"

static int64_t scaled(int64_t bytes, int64_t factor)
{
    if (bytes <= 0) return 0; /* empty, or a size that is not known */
    unsigned __int128 product = (unsigned __int128)bytes * (unsigned __int128)factor;
    product = (product + 999999) / 1000000;
    return product > INT64_MAX ? INT64_MAX : (int64_t)product;
}

int64_t cs_memory_host(const cs_memory_model *m, const cs_storage *s)
{
    return scaled(s->bytes, m->host_factor[s->elem]);
}

int64_t cs_memory_device(const cs_memory_model *m, const cs_storage *s)
{
    return scaled(s->bytes, m->device_factor[s->elem]);
}
