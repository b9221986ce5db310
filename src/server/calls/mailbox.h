/* A mailbox: messages from any thread to the io thread, opened in the order they were posted. Posting never waits and
   never fails, so that the engine may post. Senders keep the mailbox small: the requests of a call with many messages
   in it are paused (call.c). */
#ifndef MT_SERVER_CALLS_MAILBOX_H
#define MT_SERVER_CALLS_MAILBOX_H

#include "base/compiler.h"

typedef struct mt_message mt_message;

/* The first member of whatever is posted. */
struct mt_message {
    mt_message *next;
    void (*open)(mt_message *message); /* called on the io thread; owns the message */
};

typedef struct mt_mailbox mt_mailbox;

/* NULL when the process has no file descriptor left. Free with mt_mailbox_free, when no thread posts any more. */
mt_mailbox *mt_mailbox_new(void) MT_NODISCARD;
void mt_mailbox_free(mt_mailbox *mailbox); /* opens the remaining messages; NULL is fine */

void mt_mailbox_post(mt_mailbox *mailbox, mt_message *message); /* any thread; the mailbox owns the message */

/* A descriptor that is readable while there may be messages; then the io thread calls mt_mailbox_open. */
int mt_mailbox_fd(mt_mailbox *mailbox);
void mt_mailbox_open(mt_mailbox *mailbox); /* opens all messages that have been posted so far */

#endif
