/* Lets archives that were compiled for programs (-fPIE, as Debian's are) go into a shared library.
 *
 * Such code reads `stderr` and `stdin` at a fixed distance from itself, which only works for a variable
 * that is in the same file. So the linker is told to --wrap these two: every reference becomes one to
 * the hidden variables here, which take the real values before anything runs. All else that the
 * archives use is called through the PLT, or hidden (--exclude-libs), and needs no help.
 */
#include <stdio.h>

extern FILE *__real_stderr, *__real_stdin;
extern FILE *__wrap_stderr, *__wrap_stdin;
__attribute__((visibility("hidden"))) FILE *__wrap_stderr, *__wrap_stdin;

__attribute__((constructor)) static void take_streams(void)
{
    __wrap_stderr = __real_stderr;
    __wrap_stdin = __real_stdin;
}
