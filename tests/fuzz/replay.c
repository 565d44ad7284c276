/* Stands in for libFuzzer in ordinary builds: runs the fuzz target once over every file given, and
 * every file in the folders given, in name order. No file at all is a failure. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void die(const char *path)
{
    fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
    exit(1);
}

static size_t run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st))
        die(path);
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size); /* exactly the input, so that a read past it is seen */
    if ((!data && size) || fread(data, 1, size, f) != size)
        die(path);
    fclose(f);
    fprintf(stderr, "%s\n", path); /* the last line names the input that crashed */
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static int is_visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static size_t run_folder(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, is_visible, alphasort);
    if (n < 0)
        die(path);
    for (int i = 0; i < n; i++) {
        char *name = NULL;
        if (asprintf(&name, "%s/%s", path, entries[i]->d_name) < 0)
            die(path);
        run_file(name);
        free(name);
        free(entries[i]);
    }
    free(entries);
    return (size_t)n;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st))
            die(argv[i]);
        count += S_ISDIR(st.st_mode) ? run_folder(argv[i]) : run_file(argv[i]);
    }
    printf("%zu inputs\n", count);
    return count ? 0 : 1;
}
