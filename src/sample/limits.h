/* Limits of src/sample and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_SAMPLE_LIMITS_H
#define MT_SAMPLE_LIMITS_H

/* models */
#define MT_LIMIT_CONTEXT (1u << 24)

/* compute */
#define MT_LIMIT_TOP_LOGPROBS 20
#define MT_LIMIT_DRAFT 8         /* tokens guessed ahead in a step */
#define MT_LIMIT_LOGIT_BIAS 1024 /* entries of a request's logit_bias */
#define MT_LIMIT_STOP_IDS 256    /* stop token ids of a request */
#define MT_LIMIT_BAD_WORDS 256   /* bad_words of a request */
#define MT_LIMIT_BAD_TOKENS 64   /* tokens of a bad word */

#endif
