/* Limits of src/models and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_MODELS_LIMITS_H
#define MT_MODELS_LIMITS_H

/* models */
#define MT_LIMIT_ENCODER_CONTEXT (1u << 16) /* positions of an encoder, which reads a whole text at once */

#define MT_LIMIT_CHOSEN 16384 /* positions that a layer chooses for a row to attend to */

/* compute */
#define MT_LIMIT_PATCHES 65536 /* of a picture or a video: 16 million pixels, 14 or 16 to a side */

#endif
