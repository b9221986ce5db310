/* Limits of src/events and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_EVENTS_LIMITS_H
#define MT_EVENTS_LIMITS_H

/* requests */
#define MT_LIMIT_EVENT_BATCHES 10000     /* batches of KV events that are kept for replay, or wait to be sent */
#define MT_LIMIT_EVENT_BYTES (32u << 20) /* bytes of each of these */
#define MT_LIMIT_EVENT_BATCH (8u << 20)  /* bytes of one batch */

#endif
