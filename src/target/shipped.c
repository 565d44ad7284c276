/* From a name to a target: a shipped target file (embedded), the newest of a family ("tensorrt" is
 * the highest tensorrt-VERSION), the path of a target file, or the built-in acc.
 */
#include "target/embedded.h"
#include "target/rules.h"

#include <stdio.h>
#include <string.h>

/* acc: what the text form marks with it; memory is the weight bytes alone. */
static cutset_status open_acc(cutset_target **out, cutset_error *err)
{
    return cs_target_new_marked(
        out, "acc", "built in: takes the nodes that the text form marks with @acc", err);
}

static cutset_status open_path(cutset_target **out, const char *path, cutset_error *err)
{
    cs_file file = {0};
    cutset_status status = cs_file_open(&file, path, err);
    if (status != CUTSET_OK) return status;
    status = cs_target_load(out, path, (cs_span){(const char *)file.at, file.len}, err);
    cs_file_close(&file);
    return status;
}

static cutset_status open_embedded(cutset_target **out, const cs_embedded *e, cutset_error *err)
{
    char path[160];
    snprintf(path, sizeof path, "targets/%.120s.yaml", e->name);
    return cs_target_load(out, path, (cs_span){e->text, e->len}, err);
}

/* Compares "10.15" with "11" number by number; what is no number compares as bytes. */
static int compare_versions(const char *a, const char *b)
{
    while (*a != 0 && *b != 0) {
        size_t na = strspn(a, "0123456789"), nb = strspn(b, "0123456789");
        if (na > 0 && nb > 0) {
            while (na > 1 && *a == '0')
                a++, na--;
            while (nb > 1 && *b == '0')
                b++, nb--;
            int c = na != nb ? (na < nb ? -1 : 1) : memcmp(a, b, na);
            if (c != 0) return c;
            a += na;
            b += nb;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++, b++;
        }
    }
    return (*a != 0) - (*b != 0);
}

/* The shipped target `name`, or the newest shipped name-VERSION; NULL: neither. */
static const cs_embedded *find_shipped(const char *name)
{
    size_t len = strlen(name);
    const cs_embedded *newest = NULL;
    for (size_t i = 0; i < cs_embedded_count; i++) {
        const cs_embedded *e = &cs_embedded_targets[i];
        if (strcmp(e->name, name) == 0) return e;
        bool member = strncmp(e->name, name, len) == 0 && e->name[len] == '-' &&
                      e->name[len + 1] >= '0' && e->name[len + 1] <= '9';
        if (member && (newest == NULL || compare_versions(newest->name, e->name) < 0)) newest = e;
    }
    return newest;
}

const char *cutset_target_shipped(size_t i)
{
    size_t before = 0; /* shipped names that sort before acc */
    while (before < cs_embedded_count && strcmp(cs_embedded_targets[before].name, "acc") < 0)
        before++;
    if (i == before) return "acc";
    i -= i > before;
    return i < cs_embedded_count ? cs_embedded_targets[i].name : NULL;
}

static cutset_status fail_unknown(const char *name, cutset_error *err)
{
    char list[400] = "";
    size_t len = 0;
    for (size_t i = 0; cutset_target_shipped(i) != NULL && len < sizeof list - 1; i++) {
        int more = snprintf(list + len, sizeof list - len, "%s%s", i > 0 ? ", " : "",
                            cutset_target_shipped(i));
        len += more > 0 ? (size_t)more : 0;
    }
    return cs_fail(err, CUTSET_USAGE,
                   "unknown target \"%.200s\"; shipped are %s; a target file is given as a path "
                   "with a '/' or ending in .yaml",
                   name, list);
}

cutset_status cutset_target_open(cutset_target **out, const char *name_or_path, cutset_error *err)
{
    const char *name = name_or_path;
    size_t len = strlen(name);
    if (strchr(name, '/') != NULL || (len > 5 && strcmp(name + len - 5, ".yaml") == 0))
        return open_path(out, name, err);
    if (strcmp(name, "acc") == 0) return open_acc(out, err);
    if (strcmp(name, "host") == 0)
        return cs_fail(err, CUTSET_USAGE,
                       "host is always there and comes last; name accelerators only");
    const cs_embedded *shipped = find_shipped(name);
    return shipped != NULL ? open_embedded(out, shipped, err) : fail_unknown(name, err);
}

const char *cutset_target_name(const cutset_target *target) { return target->name; }
