/* What stands beside config.json in a checkpoint: how pictures are made ready, how answers are drawn. The input is four
   texts with 0xFF between them, which no JSON has: config.json, generation_config.json, tokenizer_config.json and
   preprocessor_config.json, which stands for its kin, too. */
#include <string.h>

#include "models/limits.h"
#include "models/processor.h"
#include "models/spec.h"
#include "scratch.h"
#include "server/prepare/generation.h"
#include "weights/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void generation(const mt_config *config)
{
    mt_generation_config g;
    mt_error err = {0};

    if (mt_generation_read(&g, scratch, config, NULL, &err))
        assert(g.eos_count <= MT_LIMIT_EOS);
    else
        assert(err.code != MT_OK && strlen(err.text) > 0);
}

static void processor(const mt_config *config)
{
    mt_arena *arena = mt_arena_new(0);
    mt_model_spec spec;
    mt_error err = {0};

    if (mt_model_spec_read(&spec, config, NULL, arena, &err) && spec.vision) {
        const mt_processor *p = mt_processor_read(scratch, config, &spec, arena, &err);

        assert(p || (err.code != MT_OK && strlen(err.text) > 0));
        if (p)
            assert(mt_processor_patches(p) <= MT_LIMIT_PATCHES);
    }
    mt_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"config.json", "generation_config.json", "tokenizer_config.json",
                                        "preprocessor_config.json"};
    const uint8_t *first = data, *end = data + size;
    mt_config *config = NULL;
    mt_error err = {0};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const uint8_t *stop = data < end ? memchr(data, 0xFF, (size_t)(end - data)) : end;
        const size_t len = (size_t)((stop ? stop : end) - data);

        if (data == first)
            config = mt_config_parse((const char *)data, len, &err);
        scratch_put(names[i], data, len);
        if (i == 3) {
            scratch_put("processor_config.json", data, len);
            scratch_put("video_preprocessor_config.json", data, len);
        }
        data = stop && stop < end ? stop + 1 : end;
    }
    if (config) {
        generation(config);
        processor(config);
    }
    mt_config_free(config);
    return 0;
}
