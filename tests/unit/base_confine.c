/* What was given up is gone, for the program and what it starts, and what was kept is there. In children: it is for
   ever. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/ptrace.h>
#endif

#include "base/compiler.h"
#include "base/confine.h"

typedef struct place {
    char root[64], read[80], write[80], outside[80];
} place;

static void put(const char *folder, const char *name)
{
    char path[200];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("x", file);
    fclose(file);
}

static void make(place *p)
{
    snprintf(p->root, sizeof(p->root), "/tmp/motet-confine-XXXXXX");
    assert_non_null(mkdtemp(p->root));
    snprintf(p->read, sizeof(p->read), "%s/read", p->root);
    snprintf(p->write, sizeof(p->write), "%s/write", p->root);
    snprintf(p->outside, sizeof(p->outside), "%s/outside", p->root);
    mkdir(p->read, 0700);
    mkdir(p->write, 0700);
    mkdir(p->outside, 0700);
    put(p->read, "file");
    put(p->write, "file");
    put(p->outside, "file");
}

static int try_open(const char *folder, const char *name, int flags)
{
    char path[200];
    int file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = open(path, flags, 0600);
    if (file < 0)
        return errno;
    close(file);
    return 0;
}

#define EXPECT(condition)                                \
    do                                                   \
        if (!(condition)) {                              \
            fprintf(stderr, "not so: %s\n", #condition); \
            _exit(1);                                    \
        }                                                \
    while (0)

static unsigned confine(const place *p)
{
    const mt_confine_path paths[] = {
        {.path = p->read}, {.path = p->write, .write = true}, {.path = "/nowhere/at/all", .write = true}};

    return mt_confine(paths, sizeof(paths) / sizeof(paths[0]));
}

static void *try_files(void *ctx)
{
    const place *p = ctx;
    char from[200], to[200];

    EXPECT(try_open(p->read, "file", O_RDONLY) == 0);
    EXPECT(try_open(p->read, "file", O_WRONLY) == EACCES);
    EXPECT(try_open(p->read, "new", O_WRONLY | O_CREAT) == EACCES);
    EXPECT(try_open(p->write, "file", O_RDWR | O_TRUNC) == 0);
    EXPECT(try_open(p->write, "new", O_RDWR | O_CREAT) == 0);
    EXPECT(try_open(p->outside, "file", O_RDONLY) == EACCES);
    EXPECT(try_open("/etc", "passwd", O_RDONLY) == EACCES);
    snprintf(from, sizeof(from), "%s/sub", p->write);
    EXPECT(mkdir(from, 0700) == 0);
    snprintf(from, sizeof(from), "%s/new", p->write);
    snprintf(to, sizeof(to), "%s/sub/moved", p->write);
    EXPECT(rename(from, to) == 0);
    EXPECT(unlink(to) == 0);
    return NULL;
}

static void in_child(void *ctx)
{
    char *const words[] = {(char *)(uintptr_t) "/bin/true", NULL};
    const place *p = ctx;
    const unsigned done = confine(p);
    pthread_t thread;

    if (done & MT_CONFINED_FILES) {
        EXPECT(pthread_create(&thread, NULL, try_files, ctx) == 0 && pthread_join(thread, NULL) == 0);
        try_open(p->outside, "file", O_RDONLY);
    }
    if (done & MT_CONFINED_CALLS) {
        EXPECT(execv(words[0], words) == -1 && errno == EPERM);
#ifdef __linux__
        if (!MT_SANITIZED) /* which searches for leaks by it */
            EXPECT(ptrace(PTRACE_TRACEME, 0, 0, 0) == -1 && errno == EPERM);
#endif
    }
    if (done & MT_CONFINED_CAPABILITIES) /* root's right to any file's times, and to others' processes' limits */
        EXPECT(chown(p->read, 1, 1) == -1 && errno == EPERM);
    _exit(done ? 0 : 77);
}

static void what_is_given_up_is_gone(void **state)
{
    char said[1000], command[200];
    place p;
    int status;

    (void)state;
    make(&p);
    status = unit_in_child(in_child, &p, said, sizeof(said));
    snprintf(command, sizeof(command), "rm -rf %s", p.root);
    assert_int_equal(system(command), 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        UNIT_SKIP("nothing can be given up here");
    if (status != 0)
        fail_msg("%s", said);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_given_up_is_gone),
};
UNIT_MAIN(tests)
