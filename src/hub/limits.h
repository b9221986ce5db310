/* Limits of src/hub and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_HUB_LIMITS_H
#define MT_HUB_LIMITS_H

/* files that clients upload to make models of */
#define MT_LIMIT_UPLOADS 1024              /* that are kept */
#define MT_LIMIT_UPLOAD_BYTES (1ull << 40) /* of each */
#define MT_LIMIT_UPLOAD_AGE_S 86400        /* seconds that one is kept of which no model is made */

/* names */
#define MT_LIMIT_HUB_NAME 256                  /* bytes of a model's name, of a revision, NUL included */
#define MT_LIMIT_LOCAL_MODELS 4096             /* that are listed */
#define MT_LIMIT_PULL_ANSWER (32u << 20)       /* bytes of a hub's list of files */
#define MT_LIMIT_PULL_FILES 4096               /* files of a model that are downloaded */
#define MT_LIMIT_PULL_FILE_BYTES (1ll << 50)   /* of each */
#define MT_LIMIT_PULL_SMALL_BYTES (256u << 20) /* of each file that is no weights, such as tokenizer.json */
#define MT_LIMIT_PULL_AT_ONCE 32               /* files downloaded side by side */
#define MT_LIMIT_PULL_REDIRECTS 5              /* followed */
#define MT_LIMIT_PULL_URL 16384                /* bytes of a URL; those of other hosts are signed and long */
#define MT_LIMIT_PULL_TRIES 4                  /* attempts of a request without success, each after a longer pause */
#define MT_LIMIT_PULL_FILE_TRIES 7             /* the same for a request for a file */
#define MT_LIMIT_PULL_WAIT_S 120               /* longest time that a hub may ask to wait; more is an error */
#define MT_LIMIT_PULL_STALL_MS 30000           /* without a byte, after which a transfer counts as broken */

#endif
