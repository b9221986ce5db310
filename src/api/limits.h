/* Limits of src/api and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_API_LIMITS_H
#define MT_API_LIMITS_H

/* requests */
#define MT_LIMIT_CHOICES 128                 /* answers of one call: prompts times n */
#define MT_LIMIT_STATES (8u << 20)           /* numbers of a call that wants a vector of each token */
#define MT_LIMIT_EMBEDDINGS 2048             /* texts of one call for embeddings or scores, as OpenAI has it */
#define MT_LIMIT_BODY_BYTES (64u << 20)      /* of a request's body */
#define MT_LIMIT_JSON_LEAST (8u << 20)       /* bytes that a parsed body may have even where memory is short */
#define MT_LIMIT_JSON_MEMORY (256u << 20)    /* bytes of a parsed body */
#define MT_LIMIT_JSON_SURE (1u << 20)        /* bytes of a string in it; the system may refuse longer ones */
#define MT_LIMIT_JSON_TRIM (1u << 20)        /* bytes of a body after which memory is given back to the system */
#define MT_LIMIT_REQUEST_MEMORY (256u << 20) /* bytes of what is prepared from a request */
#define MT_LIMIT_ANSWER_BYTES (64u << 20)    /* text of an answer that is not streamed */
#define MT_LIMIT_RESPONSE_BYTES (256u << 20) /* of an answer with all its logprobs */
/* Bytes of the events of a background answer, for clients that come back to its stream */
#define MT_LIMIT_EVENT_LOG (32u << 20)
#define MT_LIMIT_STORE_QUEUE 4096          /* answers that wait to be written to the store */
#define MT_LIMIT_STORE_BYTES (128ul << 20) /* bytes of all these answers */
#define MT_LIMIT_STORE_CHAIN 1000          /* responses in a chain of previous_response_id */
#define MT_LIMIT_ITEMS_PAGE 100            /* items that are listed at once */
#define MT_LIMIT_ITEMS_PAGE_DEFAULT 20     /* the same where the client does not say */

#endif
