/* Reads where the pictures of a message come from, in all forms in which clients send them:

       {"type": "image_url", "image_url": {"url": "...", "detail": "low"}}     or "image_url": "..."
       {"type": "input_image", "image_url": "...", "detail": "low"}
       {"type": "image", "image": "..."}                                       or "url": "..."
       {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "..."}}
       {"type": "input_image", "file_id": "..."}                               or "source": {"type": "file", "file_id"}
       {"type": "video_url", "video_url": {"url": "..."}}                      or "video_url": "..."
       {"type": "video", "video": ["frame", "frame", ...], "fps": 2}           or "video": "..."

   min_pixels, max_pixels, detail, num_frames and fps, or video_fps, may stand in the part or in the object with the
   URL. */
#ifndef MT_CHAT_SOURCE_H
#define MT_CHAT_SOURCE_H

#include <stdint.h>

#include "chat/context.h"

/* The URL of a file that the server keeps: this, and its id. */
#define MT_CHAT_FILE_SCHEME "file-id:"

typedef enum mt_chat_detail {
    MT_CHAT_DETAIL_AUTO,
    MT_CHAT_DETAIL_LOW,
    MT_CHAT_DETAIL_HIGH,
    MT_CHAT_DETAIL_ORIGINAL /* OpenAI's name for what is high here: as large as the model accepts */
} mt_chat_detail;

/* Settings for a picture or a video; 0: not given. */
typedef struct mt_chat_media_options {
    mt_chat_detail detail;
    int64_t min_pixels, max_pixels;
    /* Frames used per second of a video; of a list of frames, the rate at which they were recorded */
    double fps;
    int64_t num_frames; /* frames used of a video */
    /* Long pictures are shown in pieces, too ("do_pan_and_scan"), where the model can */
    bool crops;
} mt_chat_media_options;

typedef struct mt_chat_source {
    mt_chat_text *urls; /* one, or the frames of a video */
    size_t count;
    bool frames; /* urls are pictures that make a video */
    mt_chat_media_options options;
} mt_chat_source;

/* all: the request's settings for all media. False: *err, a sentence for a 400 that names message and part. The source
   lives in the arena or is borrowed from the part. */
bool mt_chat_source_read(mt_chat_source *out, mt_arena *arena, const mt_chat_media *media,
                         const mt_chat_media_options *all, mt_error *err) MT_NODISCARD;

/* Reads detail, min_pixels, max_pixels, fps, num_frames and do_pan_and_scan of an object, as far as they are given.
   what: names the object in errors. False: *err, about one of these fields. */
bool mt_chat_media_options_read(mt_chat_media_options *options, const json_t *object, const char *what,
                                mt_error *err) MT_NODISCARD;

#endif
