/* The projector of a GGUF model: a second file, of architecture "clip", with a vision tower and what joins it to the
   text model. Together they are presented as the checkpoint of the vision-language model that both were made from. */
#ifndef MT_WEIGHTS_GGUF_PROJECTOR_H
#define MT_WEIGHTS_GGUF_PROJECTOR_H

#include "base/arena.h"
#include "base/buf.h"
#include "weights/gguf.h"

/* Appends the text of config.json: the text model's within that of its vision-language family. False with a sentence,
   also where the projector is of a kind that motet does not know or belongs to another model. */
bool mt_gguf_projector_config(const mt_gguf *text, const mt_gguf *projector, mt_buf *out, mt_error *err) MT_NODISCARD;

/* Appends the text of preprocessor_config.json, or of video_preprocessor_config.json. What the file does not hold is as
   in the family's published checkpoints. */
bool mt_gguf_projector_images(const mt_gguf *text, const mt_gguf *projector, mt_buf *out, mt_error *err) MT_NODISCARD;
bool mt_gguf_projector_videos(const mt_gguf *text, const mt_gguf *projector, mt_buf *out, mt_error *err) MT_NODISCARD;

/* The tensors under the names of a checkpoint, in the arena, with what has to be put right (mt_tensor_fix). */
bool mt_gguf_projector_names(const mt_gguf *projector, mt_arena *arena, mt_tensor_info **out, size_t *count,
                             mt_error *err) MT_NODISCARD;

#endif
