#include "unit.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "server/calls/deadline.h"

static void *hang(void *arg)
{
    (void)arg;
    while (pause()) /* which says -1 whenever a signal came */
        ;
    return NULL;
}

/* The child waits for a thread that never ends; what it says goes to a pipe. */
static void a_thread_that_hangs_does_not_hold_the_process(void **state)
{
    int status, said[2];
    char text[256];
    ssize_t len;
    pid_t child;

    (void)state;
#if MT_SANITIZED_THREAD
    skip(); /* whose runtime does not let a forked child start threads */
#endif
    assert_int_equal(pipe(said), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        mt_deadline deadline = {0};
        pthread_t thread;

        dup2(said[1], STDERR_FILENO);
        if (pthread_create(&thread, NULL, hang, NULL) || !mt_deadline_set(&deadline, 1))
            _exit(99);
        pthread_join(thread, NULL);
        _exit(98);
    }
    close(said[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    len = read(said[0], text, sizeof(text) - 1);
    assert_true(len > 0);
    text[len] = '\0';
    assert_non_null(strstr(text, "server.stuck a thread is still at work"));
    close(said[0]);
}

static void one_that_is_met_ends_nothing(void **state)
{
    mt_deadline deadline = {0};

    (void)state;
    mt_deadline_meet(&deadline);
    assert_true(mt_deadline_set(&deadline, 600000));
    mt_deadline_meet(&deadline);
    mt_deadline_meet(&deadline);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_thread_that_hangs_does_not_hold_the_process),
    cmocka_unit_test(one_that_is_met_ends_nothing),
};

int main(void)
{
    return unit_main(__FILE__, tests, MT_COUNT(tests));
}
