/* Letters from any thread to the io thread, in the order they were posted. Posting never waits and never fails, so the
   engine may post; that the mailbox stays small is the senders' business: a call with many letters inside is paused. */
#ifndef MT_SERVER_MAILBOX_H
#define MT_SERVER_MAILBOX_H

#include "base/compiler.h"

typedef struct mt_letter mt_letter;

/* Stands first in what is sent. */
struct mt_letter {
    mt_letter *next;
    void (*open)(mt_letter *letter); /* on the io thread; takes the letter */
};

typedef struct mt_mailbox mt_mailbox;

/* NULL when the process has no file descriptor left. Free with mt_mailbox_free, when nobody posts any more. */
mt_mailbox *mt_mailbox_new(void) MT_NODISCARD;
void mt_mailbox_free(mt_mailbox *mailbox); /* opens what is still inside; NULL is fine */

void mt_mailbox_post(mt_mailbox *mailbox, mt_letter *letter); /* takes letter; any thread */

/* Readable while there may be letters. */
int mt_mailbox_fd(mt_mailbox *mailbox);
void mt_mailbox_open(mt_mailbox *mailbox); /* opens all letters that are there now */

#endif
