/* The last moment of a process that was told to end. Where it is not met, a thread of its own ends the process with a
   sentence, whatever the others are doing: one of them may be at something that never ends. */
#ifndef MT_SERVER_DEADLINE_H
#define MT_SERVER_DEADLINE_H

#include <pthread.h>
#include <stdbool.h>

typedef struct mt_deadline {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ms;   /* from mt_deadline_set to the end */
    bool set; /* the thread runs */
    bool met; /* under the lock: all was done in time */
} mt_deadline;

/* Once, of a zeroed one; false where the system gives no thread. */
bool mt_deadline_set(mt_deadline *deadline, int ms);

/* All is done: nothing will happen. Of one that was never set, too. */
void mt_deadline_meet(mt_deadline *deadline);

#endif
