/* Limits of src/server and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_SERVER_LIMITS_H
#define MT_SERVER_LIMITS_H

/* templates */
#define MT_LIMIT_OWN_TEMPLATE_BYTES (128 << 10) /* of a template that a client sends */
#define MT_LIMIT_OWN_TEMPLATES 8                /* templates of clients that are kept compiled */

/* HTTP, always. */
#define MT_LIMIT_WARNINGS 4096               /* bytes of an answer's warnings */
#define MT_LIMIT_TIMEOUT_SECONDS (7 * 86400) /* longest "timeout" of a request */
#define MT_LIMIT_TIMEOUT_MS 50               /* between checks of deadlines */

/* Media, always. */
/* Pixels of all pictures of a request, each as often as its scans go through it: half a minute */
#define MT_LIMIT_MEDIA_PICTURES_WORK (1ull << 32)
#define MT_LIMIT_MEDIA_LONG (1ull << 26) /* pixels to decode (media/cost.h) above which decoding is long work */

/* files that clients upload to make models of */
#define MT_LIMIT_UPLOADING 4             /* that come at a time */
#define MT_LIMIT_UPLOAD_AHEAD (4u << 20) /* bytes of one that wait to be written; beyond, nothing more is read */
#define MT_LIMIT_UPLOAD_FILES 256        /* of which a model is made */

/* files that clients keep here */
#define MT_LIMIT_FILES_MOVING 32 /* that are uploaded, and that are fetched, at a time */
#define MT_LIMIT_FILES_OWN 16    /* of them, by one client */
#define MT_LIMIT_FILES_PAGE 1000 /* of a list of Anthropic's API, of batches, too */

/* batches */
#define MT_LIMIT_BATCHES 1000              /* that are kept, those that are over included */
#define MT_LIMIT_BATCHES_EACH 500          /* of these, of one account with a key */
#define MT_LIMIT_BATCH_LINES 100000        /* lines of one */
#define MT_LIMIT_BATCH_NAME 512            /* bytes of a line's custom_id */
#define MT_LIMIT_BATCH_ERRORS 20           /* faults of a file that are told */
#define MT_LIMIT_BATCH_METADATA 16384      /* bytes of what a client notes with one */
#define MT_LIMIT_BATCH_HEAD (256u << 10)   /* bytes of what is known of one, without its lines */
#define MT_LIMIT_BATCH_SECONDS (7 * 86400) /* longest completion_window */

#define MT_LIMIT_DOCUMENT_BYTES (4u << 20)  /* of the texts of all documents of a request */
#define MT_LIMIT_RENDERED_BYTES (64u << 20) /* of what is kept of PDFs that were read */
#define MT_LIMIT_PDF_PAGES 10000            /* that a server may be told to read */

/* constraints */
#define MT_LIMIT_CONSTRAINTS 64             /* constraints that are kept after their last request */
#define MT_LIMIT_CONSTRAINT_ONE (32u << 20) /* bytes of the largest constraint that is compiled */

/* requests */
#define MT_LIMIT_COUNTED 4           /* contexts: a prompt is counted up to so many before it is refused as too long */
#define MT_LIMIT_EMBEDDING_FLIGHT 16 /* of these, texts that the engine has at a time */
#define MT_LIMIT_API_KEYS 1024       /* API keys */
#define MT_LIMIT_GREETING_BYTES 8192 /* of messages on a WebSocket before one has had a good key */
#define MT_LIMIT_KEY_NAME 64         /* bytes of a key's name, NUL included */
#define MT_LIMIT_PREPARING 256       /* calls that wait for a preparation thread */
#define MT_LIMIT_PREPARE_COST 6      /* bytes that preparing one byte of a body takes at most */
#define MT_LIMIT_TOKEN_COST 24       /* bytes that a token takes which is only counted */
#define MT_LIMIT_PREPARING_LARGE 256 /* calls that wait in the lane of large bodies */
/* For compiling a constraint in its own lane; one that takes longer moves to the lane of large bodies */
#define MT_LIMIT_COMPILING_MS 100
#define MT_LIMIT_PREPARING_MEDIA 256     /* calls that wait in the lane of pictures */
#define MT_LIMIT_PREPARING_SPARE 8       /* threads of a lane for clients that would wait behind long work of others */
#define MT_LIMIT_PREPARING_LONG_MS 1000  /* after which preparing a call counts as long work */
#define MT_LIMIT_END_MS 3000             /* for threads to end, after the time for answers */
#define MT_LIMIT_STATE_BYTES (16u << 20) /* of what SIGQUIT writes */
#define MT_LIMIT_OUTBOX 256              /* events of a call that may wait for the io thread before it is paused */
#define MT_LIMIT_MEDIA_PARTS 256         /* pictures and videos of a request */
#define MT_LIMIT_WATCHERS 16             /* clients that follow one background answer, beside the one that asked */
#define MT_LIMIT_ALONE_SECONDS 600       /* of an answer in the background that nobody follows */
#define MT_LIMIT_ORIGIN 512              /* bytes of an origin that pages may call */
#define MT_LIMIT_UPLOADED 4096           /* pictures that clients have uploaded */
#define MT_LIMIT_SCORE_SECONDS 3600      /* seconds of the dashboard's charts */
#define MT_LIMIT_DASHBOARDS 32           /* viewers of the dashboard at a time */
#define MT_LIMIT_PULLS 4                 /* models that are downloaded for clients at a time */
#define MT_LIMIT_PULL_BODY 4096          /* bytes of a request to download a model */
#define MT_LIMIT_DISK_RECORDS (1u << 20) /* records of the cache on disk */
#define MT_LIMIT_REMOTE_QUEUE (64ul << 20) /* bytes that wait to be sent to a shared store */
#define MT_LIMIT_CREATED 256               /* models that clients have created of others */
#define MT_LIMIT_CREATED_NAME 120          /* bytes of the name of one */
#define MT_LIMIT_CREATED_BYTES 262144      /* bytes of what it has, and of a request to create one */
#define MT_LIMIT_MODELS 1024               /* models that a server knows */
#define MT_LIMIT_LOADING 1024              /* calls that wait for models to be loaded */
#define MT_LIMIT_WARM_PROMPTS 256          /* prompts of --warm-prompts */
#define MT_LIMIT_WARM_BYTES (16u << 20)    /* bytes of their file */

#endif
