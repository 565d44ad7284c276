/* A program of somebody who uses the installed library. */
#include <cutset.h>
#include <stdio.h>

int main(void)
{
    puts(cutset_version_string());
    return 0;
}
