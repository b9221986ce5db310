/* What every unit test program includes: cmocka, and a main that ends with the line tests/run.py counts:

       static const struct CMUnitTest tests[] = { cmocka_unit_test(...), ... };
       UNIT_MAIN(tests)

   Programs run with the top of the source tree as their folder. */
#ifndef MT_TESTS_UNIT_H
#define MT_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap.h"

static int unit_skipped;

/* Whether to leave out what takes long: true under the sanitizers, which are ten times slower. */
static inline bool unit_quick(void)
{
    return getenv("MOTET_TEST_QUICK") != NULL;
}

/* Whether to take all there is, and not each kind of case once: true in `make test-full`. */
static inline bool unit_full(void)
{
    return getenv("MOTET_TEST_FULL") && !unit_quick();
}

/* Whether only who meets whom counts, not what comes of it: true under the thread sanitizer. What is computed alone, or
   once more by the same threads in another size, shows no other race. */
static inline bool unit_races(void)
{
    return getenv("MOTET_TEST_RACES") != NULL;
}

/* What computes in tests: MOTET_TEST_DEVICE, which runs a whole suite on a GPU. */
static inline const char *unit_device(void)
{
    const char *name = getenv("MOTET_TEST_DEVICE");
    return name ? name : "cpu";
}

/* Ends the running test without a verdict; the reason goes into the log. */
#define UNIT_SKIP(reason)                             \
    do {                                              \
        printf("%s skipped: %s\n", __func__, reason); \
        unit_skipped++;                               \
        skip();                                       \
    } while (0)

/* Runs body(arg) in a child and returns how it ended, as waitpid tells it. What it writes to stderr is put into
   text. For what ends the program on purpose. */
static inline int unit_in_child(void (*body)(void *arg), void *arg, char *text, size_t size)
{
    int fds[2], status;
    size_t len = 0;
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        body(arg);
        _exit(0);
    }
    close(fds[1]);
    while (len + 1 < size && (n = read(fds[0], text + len, size - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static inline int unit_main(const char *file, const struct CMUnitTest *tests, size_t count)
{
    static char out[BUFSIZ]; /* not of the heap */
    const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;

    setvbuf(stdout, out, _IOLBF, sizeof(out));
    const size_t before = heap_bytes();
    const int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    printf("%.*s: %d passed, %d failed, %d skipped\n", (int)strcspn(name, "."), name,
           (int)count - failed - unit_skipped, failed, unit_skipped);
    fflush(stdout); /* the leak sanitizer may end the program without it */
    heap_end(before);
    return failed ? 1 : 0;
}

/* For tests of what a build may lack: where it does, the program ends as skipped, with the library's name. */
#define UNIT_MAIN_IF(present, library, tests)                                      \
    int main(void)                                                                 \
    {                                                                              \
        if (present)                                                               \
            return unit_main(__FILE__, tests, sizeof(tests) / sizeof((tests)[0])); \
        printf("skipped: this motet was built without %s\n", library);             \
        return 77;                                                                 \
    }

#define UNIT_MAIN(tests)                                                       \
    int main(void)                                                             \
    {                                                                          \
        return unit_main(__FILE__, tests, sizeof(tests) / sizeof((tests)[0])); \
    }

#endif
