/* A mailbox: letters from any thread to the io thread, opened in the order they were posted. Posting never waits and
   never fails, so that the engine may post. Senders keep the mailbox small: the requests of a call with many letters in
   it are paused (call.c). */
#ifndef MT_SERVER_CALLS_MAILBOX_H
#define MT_SERVER_CALLS_MAILBOX_H

#include "base/compiler.h"

typedef struct mt_letter mt_letter;

/* The first member of whatever is posted. */
struct mt_letter {
    mt_letter *next;
    void (*open)(mt_letter *letter); /* called on the io thread; owns the letter */
};

typedef struct mt_mailbox mt_mailbox;

/* NULL when the process has no file descriptor left. Free with mt_mailbox_free, when no thread posts any more. */
mt_mailbox *mt_mailbox_new(void) MT_NODISCARD;
void mt_mailbox_free(mt_mailbox *mailbox); /* opens the remaining letters; NULL is fine */

void mt_mailbox_post(mt_mailbox *mailbox, mt_letter *letter); /* any thread; the mailbox owns the letter */

/* A descriptor that is readable while there may be letters; then the io thread calls mt_mailbox_open. */
int mt_mailbox_fd(mt_mailbox *mailbox);
void mt_mailbox_open(mt_mailbox *mailbox); /* opens all letters that have been posted so far */

#endif
