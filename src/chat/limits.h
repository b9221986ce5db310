/* Limits of src/chat and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_CHAT_LIMITS_H
#define MT_CHAT_LIMITS_H

/* messages */
#define MT_LIMIT_MESSAGES 100000   /* of a request */
#define MT_LIMIT_TOOL_RESULTS 1024 /* after one message that are sorted */
#define MT_LIMIT_CUT_PROBES 16     /* renderings that look for the beginnings of turns, where loops do not tell */
#define MT_LIMIT_TURN_STARTS 16    /* different tokens that turns begin with */

/* what models write */
#define MT_LIMIT_PARSE_HELD (1u << 20) /* bytes held back until it is known what they are */
#define MT_LIMIT_PARSE_CALLS 128       /* tool calls of an answer; further ones are dropped */

/* constraints */
#define MT_LIMIT_GRAMMAR_MARKER 64 /* bytes of a marker that is looked for */
#define MT_LIMIT_SHAPE_CALLS 32    /* calls of an answer that must have calls */

/* requests */
#define MT_LIMIT_MEDIA_LIST 768 /* frames of a video that is sent as a list of pictures */
#define MT_LIMIT_MEDIA_FPS 240  /* frames a second that may be asked for */

#endif
