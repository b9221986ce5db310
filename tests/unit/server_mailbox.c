#include "unit.h"

#include <poll.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "server/calls/mailbox.h"

enum { THREADS = 4, LETTERS = 2000 };

typedef struct note {
    mt_message message;
    size_t sender, number;
} note;

static size_t next_of[THREADS], opened;

static void open_note(mt_message *message)
{
    note *n = (note *)message;

    assert_int_equal(n->number, next_of[n->sender]);
    next_of[n->sender]++;
    opened++;
    mt_free(n);
}

typedef struct sender {
    mt_mailbox *mailbox;
    size_t number;
} sender;

static void *send_all(void *arg)
{
    const sender *s = arg;

    for (size_t i = 0; i < LETTERS; i++) {
        note *n = mt_alloc(sizeof(*n));

        *n = (note){.message = {.open = open_note}, .sender = s->number, .number = i};
        mt_mailbox_post(s->mailbox, &n->message);
    }
    return NULL;
}

static void letters_of_a_sender_come_in_order_and_none_is_lost(void **state)
{
    mt_mailbox *mailbox = mt_mailbox_new();
    pthread_t threads[THREADS];
    sender senders[THREADS];

    (void)state;
    opened = 0;
    memset(next_of, 0, sizeof(next_of));
    for (size_t i = 0; i < THREADS; i++) {
        senders[i] = (sender){.mailbox = mailbox, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
    }
    while (opened < THREADS * LETTERS) {
        struct pollfd fd = {.fd = mt_mailbox_fd(mailbox), .events = POLLIN};

        assert_int_equal(poll(&fd, 1, -1), 1);
        mt_mailbox_open(mailbox);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    mt_mailbox_free(mailbox);
}

static void what_is_left_is_opened_at_the_end(void **state)
{
    mt_mailbox *mailbox = mt_mailbox_new();
    sender one = {.mailbox = mailbox};

    (void)state;
    opened = 0;
    memset(next_of, 0, sizeof(next_of));
    send_all(&one);
    mt_mailbox_free(mailbox);
    assert_int_equal(opened, LETTERS);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(letters_of_a_sender_come_in_order_and_none_is_lost),
    cmocka_unit_test(what_is_left_is_opened_at_the_end),
};
UNIT_MAIN(tests)
