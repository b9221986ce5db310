/* Limits of src/device and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_DEVICE_LIMITS_H
#define MT_DEVICE_LIMITS_H

/* models */
#define MT_LIMIT_EXPERTS 4096
#define MT_LIMIT_EXPERTS_PER_TOKEN 64
#define MT_LIMIT_EXPERT_GROUPS 64
#define MT_LIMIT_HEAD_DIM 1024
#define MT_LIMIT_CONV_TAPS 16 /* of the convolution of a recurrent layer */

/* compute */
#define MT_LIMIT_BATCH_ROWS 8192 /* rows of one step */
#define MT_LIMIT_MEMO_ROWS 4     /* tokens that a sequence with a recurrent state may guess ahead */

#endif
