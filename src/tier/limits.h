/* Limits of src/tier and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_TIER_LIMITS_H
#define MT_TIER_LIMITS_H

/* requests */
#define MT_LIMIT_DISK_FILES 256          /* files of the cache on disk, all open; every process begins one */
#define MT_LIMIT_DISK_LEAST (64ul << 20) /* least bytes of the cache on disk */

#endif
