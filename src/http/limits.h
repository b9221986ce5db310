/* Limits of src/http and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_HTTP_LIMITS_H
#define MT_HTTP_LIMITS_H

/* HTTP, unless options say otherwise. */
#define MT_LIMIT_HTTP_CONNECTIONS 4096            /* of one address; a third more are for others */
#define MT_LIMIT_HTTP_SPARE 32                    /* beyond these, for routes that are always answered */
#define MT_LIMIT_HTTP_HEAD_BYTES 32768            /* request line and headers */
#define MT_LIMIT_HTTP_HEADERS 100                 /* of a request */
#define MT_LIMIT_HTTP_BODY_BYTES (128u << 20)     /* of a request */
#define MT_LIMIT_HTTP_BODIES_BYTES (1u << 30)     /* of all bodies being read */
#define MT_LIMIT_HTTP_PIPELINE_BYTES (256u << 10) /* read ahead of the request being answered */
#define MT_LIMIT_HTTP_OUTPUT_PAUSE (256u << 10)   /* bytes waiting for a client at which its producer pauses */
#define MT_LIMIT_HTTP_OUTPUT_DROP (16u << 20)     /* bytes waiting for a client at which it is dropped */
#define MT_LIMIT_HTTP_IDLE_MS 75000               /* between requests */
#define MT_LIMIT_HTTP_HEAD_MS 20000               /* for a client to send a head */
#define MT_LIMIT_HTTP_BODY_MS 300000              /* for a client to send a body */
#define MT_LIMIT_HTTP_SEND_MS 60000               /* without the client reading a byte of its answer */
#define MT_LIMIT_HTTP_LINGER_MS 2000              /* for the client to close after us */
#define MT_LIMIT_HTTP_SOCKET_MS 3600000           /* a WebSocket's, from its handshake to its end */

/* HTTP, always. */
#define MT_LIMIT_HTTP_CHUNK_EXTENSIONS 1024 /* bytes of all extensions of a body's chunks */
#define MT_LIMIT_HTTP_EXTRA 8               /* headers that a hook may add to an answer */
#define MT_LIMIT_HTTP_NAME 128              /* bytes of a client's name for a request */
#define MT_LIMIT_HTTP_HOST 255              /* bytes of the name in a host header */
#define MT_LIMIT_HTTP_PARAMS 4              /* of a path pattern */
#define MT_LIMIT_HTTP_NEAREST 63            /* bytes of an unknown path that are compared with the known ones */
#define MT_LIMIT_HTTP_SOCKET_MANY 64        /* messages of a WebSocket that are answered side by side */
#define MT_LIMIT_HTTP_TURN 32               /* requests of one connection before others have their turn */
#define MT_LIMIT_HTTP_ERROR_BYTES 65536     /* body of an error */
#define MT_LIMIT_HTTP_SOCKETS 8             /* addresses of a host that are listened on */
#define MT_LIMIT_HTTP_PROXIES 64            /* addresses and networks of trusted proxies */

/* requests */
#define MT_LIMIT_SMALL_BODY (256u << 10) /* bytes; larger bodies are prepared one at a time, in a lane of their own */

#endif
