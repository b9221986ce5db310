/* Limits of src/engine and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_ENGINE_LIMITS_H
#define MT_ENGINE_LIMITS_H

/* compute */
#define MT_LIMIT_SEQUENCES 1024   /* sequences of one step */
#define MT_LIMIT_MEMOS 16         /* sequences with a recurrent state that may guess ahead at a time */
#define MT_LIMIT_REPEAT_PERIOD 64 /* tokens of the longest repeated part for which an answer is ended */

/* constraints */
#define MT_LIMIT_CONSTRAINT_MASKS (32u << 20) /* bytes of the masks that are kept */
#define MT_LIMIT_CONSTRAINT_BYTES (1u << 28)  /* of masks, the vocabulary's index and all compiled constraints */
#define MT_LIMIT_CONSTRAINT_SHARE 16          /* these bytes are at most this fraction of --memory */

/* requests */
#define MT_LIMIT_REQUESTS_BYTES (640u << 20) /* bytes for large requests: enough for one of 64 MiB */
/* Bytes for large requests at least, unless that is more than a share of the memory (engine/memory.c, fleet_room.c) */
#define MT_LIMIT_REQUESTS_LEAST (32u << 20)
#define MT_LIMIT_REQUESTS_ASIDE (4u << 20) /* bytes for small requests that are being read and answered */
#define MT_LIMIT_STEP_NAMED 8              /* answers that the log names for a slow step */
#define MT_LIMIT_SCORE_NOTES (128u << 10)  /* notes of the dashboard's timeline; fewer with little memory */
#define MT_LIMIT_SCORE_VOICES (8u << 10)   /* answers in the dashboard's timeline that have ended */
#define MT_LIMIT_USABLE_CONTEXT 8192 /* tokens for which a model gets memory at least, where there are several models */

#endif
