#include "unit.h"

#include <poll.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/queue.h"

static char items[1000];

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void first_in_first_out_within_the_capacity(void **state)
{
    mt_queue *queue = mt_queue_new(3);

    (void)state;
    for (int round = 0; round < 10; round++) {
        assert_null(mt_queue_pop(queue));
        assert_true(mt_queue_push(queue, items));
        assert_true(mt_queue_push(queue, items + 1));
        assert_true(mt_queue_push(queue, items + 2));
        assert_false(mt_queue_push(queue, items + 3));
        assert_int_equal(mt_queue_len(queue), 3);
        assert_ptr_equal(mt_queue_pop(queue), items);
        assert_true(mt_queue_push(queue, items + 4));
        assert_ptr_equal(mt_queue_wait(queue, 0), items + 1);
        assert_ptr_equal(mt_queue_wait(queue, -1), items + 2);
        assert_ptr_equal(mt_queue_pop(queue), items + 4);
    }
    mt_queue_free(queue);
    mt_queue_free(NULL);
}

static void the_descriptor_follows_the_content(void **state)
{
    mt_queue *queue = mt_queue_new(2);
    int fd;

    (void)state;
    assert_true(mt_queue_push(queue, items));
    fd = mt_queue_fd(queue); /* asked for late: it knows of what is inside */
    assert_true(readable(fd));
    assert_true(mt_queue_push(queue, items));
    assert_ptr_equal(mt_queue_pop(queue), items);
    assert_true(readable(fd));
    assert_ptr_equal(mt_queue_pop(queue), items);
    assert_false(readable(fd));
    assert_null(mt_queue_pop(queue));
    assert_true(mt_queue_push(queue, items));
    assert_true(readable(fd));
    assert_ptr_equal(mt_queue_wait(queue, 0), items);
    assert_false(readable(fd));
    mt_queue_close(queue);
    assert_true(readable(fd));
    mt_queue_free(queue);
}

static void waiting_ends(void **state)
{
    mt_queue *queue = mt_queue_new(1);
    uint64_t start = mt_clock_ns(), ns;

    (void)state;
    assert_null(mt_queue_wait(queue, 20));
    ns = mt_clock_ns() - start;
    assert_true(ns >= 19000000);
    mt_queue_free(queue);
}

static void a_closed_queue_drains(void **state)
{
    mt_queue *queue = mt_queue_new(4);

    (void)state;
    assert_true(mt_queue_push(queue, items));
    mt_queue_close(queue);
    assert_false(mt_queue_push(queue, items + 1));
    assert_ptr_equal(mt_queue_wait(queue, -1), items);
    assert_null(mt_queue_wait(queue, -1));
    assert_null(mt_queue_pop(queue));
    mt_queue_free(queue);
}

static void *close_soon(void *arg)
{
    usleep(2000);
    mt_queue_close(arg);
    return NULL;
}

static void closing_wakes_who_waits(void **state)
{
    mt_queue *queue = mt_queue_new(1);
    pthread_t thread;

    (void)state;
    pthread_create(&thread, NULL, close_soon, queue);
    assert_null(mt_queue_wait(queue, -1));
    pthread_join(thread, NULL);
    mt_queue_free(queue);
}

enum { SENDERS = 3, EACH = 20000 };

typedef struct parcel {
    int sender, number;
} parcel;

typedef struct sender {
    mt_queue *queue;
    parcel parcels[EACH];
} sender;

static void *send_all(void *arg)
{
    sender *s = arg;

    for (int i = 0; i < EACH; i++)
        while (!mt_queue_push(s->queue, &s->parcels[i]))
            sched_yield();
    return NULL;
}

/* Each sender's parcels arrive once and in its order. use_fd: the receiver sleeps in poll, as an event loop does. */
static void send_and_receive(bool use_fd)
{
    static sender senders[SENDERS];
    mt_queue *queue = mt_queue_new(16);
    pthread_t threads[SENDERS];
    int next[SENDERS] = {0};
    struct pollfd p = {.fd = use_fd ? mt_queue_fd(queue) : -1, .events = POLLIN};

    for (int s = 0; s < SENDERS; s++) {
        senders[s].queue = queue;
        for (int i = 0; i < EACH; i++)
            senders[s].parcels[i] = (parcel){s, i};
        pthread_create(&threads[s], NULL, send_all, &senders[s]);
    }
    for (int got = 0; got < SENDERS * EACH;) {
        parcel *one = use_fd ? mt_queue_pop(queue) : mt_queue_wait(queue, -1);

        if (!one) {
            assert_int_equal(poll(&p, 1, -1), 1);
            continue;
        }
        assert_int_equal(one->number, next[one->sender]++);
        got++;
    }
    for (int s = 0; s < SENDERS; s++)
        pthread_join(threads[s], NULL);
    assert_int_equal(mt_queue_len(queue), 0);
    mt_queue_free(queue);
}

static void across_threads_by_waiting(void **state)
{
    (void)state;
    send_and_receive(false);
}

static void across_threads_by_descriptor(void **state)
{
    (void)state;
    send_and_receive(true);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(first_in_first_out_within_the_capacity),
    cmocka_unit_test(the_descriptor_follows_the_content),
    cmocka_unit_test(waiting_ends),
    cmocka_unit_test(a_closed_queue_drains),
    cmocka_unit_test(closing_wakes_who_waits),
    cmocka_unit_test(across_threads_by_waiting),
    cmocka_unit_test(across_threads_by_descriptor),
};
UNIT_MAIN(tests)
