/* Kinds of projectors (clip.projector_type) as a table, and the sizes that their files tell (gguf_projector.h). */
#ifndef MT_WEIGHTS_GGUF_CLIP_H
#define MT_WEIGHTS_GGUF_CLIP_H

#include <jansson.h>

#include "weights/gguf.h"
#include "weights/gguf_arch.h"

/* A text model that a kind of projector belongs to. */
typedef struct mt_clip_text {
    const char *type;  /* model_type of the text model's config */
    const char *outer; /* that of the vision-language model */
    const char *inner; /* that of its "text_config", where it has another name there; NULL: as type */
} mt_clip_text;

/* Sizes of a tower, from keys and from the shapes of tensors. */
typedef struct mt_clip_sizes {
    int64_t hidden, ffn, layers, heads, kv_heads, head_dim, patch, merge;
    int64_t image;  /* clip.vision.image_size: pixels, of what depends on the kind; 0: none */
    int64_t places; /* rows of the table of positions that belong to patches; 0: it has none */
    int64_t frames; /* that the convolution takes */
} mt_clip_sizes;

enum {
    MT_CLIP_TURNED = 1, /* rows of q and k are ordered so that neighbouring elements of a head turn together */
    MT_CLIP_PLANES = 2, /* what takes pixels has colours first, in the checkpoint last */
    MT_CLIP_INNER = 4,  /* weights of a layer's products are in a module of their own, ".linear" */
    MT_CLIP_ONES = 8,   /* the norm of the projector has 1 added */
    MT_CLIP_PAIRS = 16  /* the convolution takes two frames, each with a tensor of its own */
};

typedef struct mt_clip_kind {
    const char *name; /* "qwen3vl_merger" */
    mt_clip_text texts[6];
    const char *image_token, *video_token; /* spellings of the tokens that stand for pictures; NULL: none for videos */
    const char *spare;      /* a token that has no other use, for files without image_token; NULL: none */
    const char *activation; /* of the tower's MLP, unless clip.use_silu says another */
    int64_t merge;          /* patches along a token's side, where no key says it */
    int64_t summary;        /* rows of the table of positions that are of no patch */
    /* Set what only this kind has: of config.json and its vision_config, of the settings of images and of videos. */
    void (*config)(const mt_gguf *p, const mt_clip_sizes *s, json_t *root, json_t *vision);
    void (*images)(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings);
    void (*videos)(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings); /* NULL: they have the images' */
    const char *layer; /* what stands before a layer's number in the checkpoint */
    const mt_gguf_rename *layers, *others;
    unsigned flags;
} mt_clip_kind;

extern const mt_clip_kind mt_clip_kinds[]; /* ends with one that has no name */

/* The kind of a projector; NULL with a sentence. */
const mt_clip_kind *mt_clip_kind_of(const mt_gguf *p, mt_error *err) MT_NODISCARD;

/* Reads the sizes. False with a sentence that names what is missing. */
bool mt_clip_sizes_read(mt_clip_sizes *s, const mt_clip_kind *kind, const mt_gguf *p, mt_error *err) MT_NODISCARD;

/* A number "clip.vision.KEY". */
int64_t mt_clip_int(const mt_gguf *p, const char *key, int64_t fallback);

/* Rows of a tensor; 0: there is none of that name. */
int64_t mt_clip_rows(const mt_gguf *p, const char *name);

/* Whether "ffn_up" and "ffn_down" have each other's names, as in files of older converters. */
bool mt_clip_swapped(const mt_gguf *p);

#endif
