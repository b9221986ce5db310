/* Limits of src/base and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_BASE_LIMITS_H
#define MT_BASE_LIMITS_H

/* text */
#define MT_LIMIT_LOG_LINE 4096 /* bytes of one log line */
#define MT_LIMIT_PATH 4096     /* bytes of a file path, NUL included */

/* memory */
#define MT_LIMIT_RESERVE_PIECES 8          /* pieces of the reserve for when the system refuses memory */
#define MT_LIMIT_RESERVE_PIECE (8ul << 20) /* bytes of each: only addresses, no memory */

/* JSON */
#define MT_LIMIT_JSON_DEPTH 512 /* nested containers */

/* checkpoints */
#define MT_LIMIT_SHARDS 1024
#define MT_LIMIT_MAPPINGS (4 * MT_LIMIT_SHARDS) /* mapped files that are guarded against being shortened */

/* compute */
#define MT_LIMIT_THREADS 256

/* requests */
#define MT_LIMIT_CRASH_IDS 4096 /* calls that a crash report names */
#define MT_LIMIT_CRASH_ID 64    /* bytes of each id, NUL included */

#endif
