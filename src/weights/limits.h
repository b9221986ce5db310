/* Limits of src/weights and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_WEIGHTS_LIMITS_H
#define MT_WEIGHTS_LIMITS_H

/* JSON */
#define MT_LIMIT_CONFIG_BYTES (4u << 20) /* config.json and its siblings */

/* templates */
#define MT_LIMIT_TEMPLATE_BYTES (1u << 20) /* of a template's text */

/* checkpoints */
#define MT_LIMIT_HEADER_BYTES (256u << 20) /* a safetensors header */
#define MT_LIMIT_TENSORS 1000000           /* tensors of a checkpoint */
#define MT_LIMIT_TENSOR_NAME 512           /* bytes of a tensor's name */
#define MT_LIMIT_TENSOR_DIMS 8
#define MT_LIMIT_GGUF_KEYS 65536           /* keys of a GGUF file */
#define MT_LIMIT_GGUF_ELEMENTS (1u << 24)  /* elements of all arrays of a GGUF file */
#define MT_LIMIT_GGUF_SPLITS (1u << 30)    /* squares of the lengths of all pieces whose merges are derived */
#define MT_LIMIT_GGUF_PROBES 256           /* slots of the table of its tokens that one token may be looked for in */
#define MT_LIMIT_GGUF_ALIGNMENT (1u << 20) /* bytes that its tensors are aligned to */

/* models */
#define MT_LIMIT_LAYERS 512
#define MT_LIMIT_STATE_HEADS 1024 /* of a recurrent layer */
#define MT_LIMIT_WIDTH (1u << 20) /* hidden, intermediate and projection widths */
#define MT_LIMIT_VOCAB (1u << 22)

/* tokenizers */
#define MT_LIMIT_TOKENIZER_BYTES (256u << 20) /* a tokenizer.json */
#define MT_LIMIT_TOKEN_BYTES 65536            /* bytes of a token's spelling */

/* names */
#define MT_LIMIT_LOCAL_FILES 100000 /* files of a model that are examined */

/* requests */
#define MT_LIMIT_EOS 32 /* tokens that end an answer */

#endif
